import { createLimiter, type Duration } from 'millrace'
import { monotonicClock } from 'millrace/internal'
import { Admissions } from './admissions.js'
import { addResponses, type Kind, load, noResponses, type Responses, Tally } from './load.js'
import type { Engine } from './messages.js'
import { Servers } from './servers.js'

export interface DemoOptions {
  readonly seconds: number
  /** At least 2: one polite and one greedy client. */
  readonly clients: number
  readonly limit: number
  readonly window: Duration
  readonly threads: number
  readonly engine: Engine
  /** The port of the first thread; the others use the ports after it. 0 selects free ports. */
  readonly port: number
}

/** The requests of one kind of client to the server with the limiter, including its warm-up. */
export interface KindResult extends Responses {
  readonly clients: number
  readonly requests: number
  /** The most admissions of one such client in any window. */
  readonly peak: number
}

/** The performance of a server under load, without its warm-up. */
export interface ServerResult {
  readonly seconds: number
  readonly requests: number
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly longestPauseMs: number
}

export interface DemoResult {
  readonly limit: number
  readonly windowMs: number
  readonly granularityMs: number
  readonly threads: number
  readonly engine: Engine
  readonly polite: KindResult
  readonly greedy: KindResult
  readonly withLimiter: ServerResult
  readonly withoutLimiter: ServerResult
  /**
   * The most admissions of any client in any window, by the log of the times at which decisions took effect.
   */
  readonly mostInAnyWindow: number
  readonly held: boolean
  /** Whether a request was refused. Without that, the demo has shown nothing. */
  readonly reached: boolean
  /** The requests that each greedy client had under way at a time, in the last load: more than 1 if the load was raised. */
  readonly inFlight: number
  /** Whether Ctrl-C stopped the demo. */
  readonly stoppedEarly: boolean
  /** Admissions of the busiest greedy client in the window that ends at each step. */
  readonly history: { readonly stepMs: number; readonly used: readonly number[] }
}

/** The progress of the demo, for the line on a terminal. */
export interface DemoProgress {
  readonly server: 'with' | 'without'
  readonly secondsLeft: number
  /** The figures of the current slice. */
  readonly tally: Tally
}

/** One in five clients is greedy. */
const ONE_GREEDY_IN = 5
/** The approximate length of a slice of load; each server gets at least one. */
const SLICE_MS = 2_500
/** The part of the load that warms the servers up, so that V8 compiles their code before the measurement. */
const WARM_UP = 0.1
const MAX_WARM_UP_MS = 1_000
/**
 * How many requests of a greedy client are under way at a time in the loads that follow, one after another, while nothing
 * has been refused.
 */
const RAISED = [8, 64]
const HISTORY_STEP_MS = 100
const MAX_HISTORY_STEPS = 1_000

/**
 * Loads a server alternately with and without a limiter, and checks the limiter against the demo's own log.
 * If `signal` aborts, returns the results so far.
 * @throws UsageError if a port is not available
 */
export async function runDemo(
  options: DemoOptions,
  signal: AbortSignal,
  onProgress: (progress: DemoProgress) => void,
): Promise<DemoResult> {
  const { limit, window, clients, threads, engine, seconds } = options
  const limiter = createLimiter({ limit, window, maxKeys: Math.max(clients, 1_000) })
  const { windowMs, granularityMs } = limiter.rule
  const loads = loadSlices(seconds * 1000)
  const kinds = kindsOf(clients, limit, windowMs, loads.length / 2)
  const servers = await Servers.start(limiter.share(), engine, threads, options.port)
  const admissions = new Admissions(windowMs)
  const totals = { polite: noResponses(), greedy: noResponses() }
  const sides = {
    without: { tally: new Tally(), longestPauseMs: 0 },
    with: { tally: new Tally(), longestPauseMs: 0 },
  }
  const spans: { fromMs: number; toMs: number }[] = []
  const isRefused = () => totals.polite.refused + totals.greedy.refused > 0
  let inFlight = 1
  let msLeft = seconds * 1000
  const run = async ({ server, ms, isMeasured }: LoadSlice) => {
    msLeft = Math.max(0, msLeft - ms)
    const fromMs = monotonicClock.now()
    const toMs = fromMs + ms
    await servers.startSlice()
    const path = server === 'with' ? '/limited' : '/open'
    const tally = await load(servers.ports, path, kinds, { ms, inFlight }, signal, (soFar) =>
      onProgress({ server, secondsLeft: (msLeft + toMs - monotonicClock.now()) / 1000, tally: soFar }),
    )
    const slices = await servers.stopSlice()
    for (const slice of slices) admissions.add(slice)
    if (server === 'with') addResponses(totals, tally.responses)
    if (isMeasured) {
      const side = sides[server]
      side.tally.add(tally)
      side.longestPauseMs = Math.max(side.longestPauseMs, ...slices.map((slice) => slice.longestPauseMs))
    }
    if (server === 'with' && (isMeasured || inFlight > 1)) spans.push({ fromMs, toMs: fromMs + tally.ms })
  }
  try {
    for (const slice of loads) if (!signal.aborted) await run(slice)
    // Longer than a window, where a slice is not: then it holds the most that a client can use of one.
    const ms = Math.max(loads.at(-1)!.ms, Math.min(1.5 * windowMs, SLICE_MS))
    for (const raised of RAISED) {
      if (signal.aborted || isRefused()) break
      inFlight = raised
      await run({ server: 'with', ms, isMeasured: false })
    }
  } finally {
    await servers.close()
    await limiter.close()
  }
  const [polite, greedy] = kinds.map((kind) => kindResult(kind, totals[kind.name], admissions)) as [
    KindResult,
    KindResult,
  ]
  const mostInAnyWindow = Math.max(polite.peak, greedy.peak)
  const [, greedyKind] = kinds as [Kind, Kind]
  return {
    limit,
    windowMs,
    granularityMs,
    threads,
    engine,
    polite,
    greedy,
    withLimiter: serverResult(sides.with),
    withoutLimiter: serverResult(sides.without),
    mostInAnyWindow,
    held: mostInAnyWindow <= limit,
    reached: isRefused(),
    inFlight,
    stoppedEarly: signal.aborted,
    history: historyOf(greedyKind, admissions, spans),
  }
}

interface LoadSlice {
  readonly server: 'with' | 'without'
  readonly ms: number
  /** Whether it shows the performance of a server. */
  readonly isMeasured: boolean
}

/**
 * The order of load: a short warm-up of both servers, then without, with, with, without, so that order
 * favours neither.
 */
function loadSlices(totalMs: number): LoadSlice[] {
  const warmUpMs = Math.min(totalMs * WARM_UP, MAX_WARM_UP_MS)
  const pairs = Math.max(1, Math.round((totalMs - warmUpMs) / (2 * SLICE_MS)))
  const pair = (ms: number, isMeasured: boolean, withFirst: boolean): LoadSlice[] => {
    const [first, second] = withFirst ? (['with', 'without'] as const) : (['without', 'with'] as const)
    return [
      { server: first, ms, isMeasured },
      { server: second, ms, isMeasured },
    ]
  }
  const sliceMs = (totalMs - warmUpMs) / (2 * pairs)
  const measured = Array.from({ length: pairs }, (_, i) => pair(sliceMs, true, i % 2 === 1))
  return [...pair(warmUpMs / 2, false, false), ...measured.flat()]
}

/** Polite clients use a third of their limit, so that bursts of their requests are never refused. */
function kindsOf(clients: number, limit: number, windowMs: number, slices: number): Kind[] {
  const greedy = Math.max(1, Math.floor(clients / ONE_GREEDY_IN))
  const third = Math.min(limit, (limit * 1000) / windowMs) / 3
  return [
    {
      name: 'polite',
      first: 0,
      clients: clients - greedy,
      perSecond: Math.max(1, Math.floor(third)),
      most: third < 1 ? Math.max(1, Math.floor(limit / (3 * slices))) : undefined,
    },
    { name: 'greedy', first: clients - greedy, clients: greedy, perSecond: undefined, most: undefined },
  ]
}

function kindResult(kind: Kind, responses: Responses, admissions: Admissions): KindResult {
  let peak = 0
  for (let i = 0; i < kind.clients; i++) peak = Math.max(peak, admissions.peakOf(kind.first + i))
  return { clients: kind.clients, requests: responses.admitted + responses.refused, peak, ...responses }
}

function serverResult({ tally, longestPauseMs }: { tally: Tally; longestPauseMs: number }): ServerResult {
  const { requests, ms, latencyUs } = tally
  const atPercent = (percent: number) => (requests === 0 ? 0 : latencyUs.percentile(percent) / 1000)
  return {
    seconds: ms / 1000,
    requests,
    requestsPerSecond: ms === 0 ? 0 : (requests * 1000) / ms,
    p50Ms: atPercent(50),
    p99Ms: atPercent(99),
    longestPauseMs,
  }
}

/** Joins the slices with the limiter into one timeline. */
function historyOf(
  greedy: Kind,
  admissions: Admissions,
  spans: readonly { fromMs: number; toMs: number }[],
): DemoResult['history'] {
  const totalMs = spans.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0)
  const stepMs = Math.max(HISTORY_STEP_MS, totalMs / MAX_HISTORY_STEPS)
  const timesMs = spans.flatMap(({ fromMs, toMs }) =>
    Array.from({ length: Math.floor((toMs - fromMs) / stepMs) }, (_, i) => fromMs + (i + 1) * stepMs),
  )
  let closest = greedy.first
  for (let i = 1; i < greedy.clients; i++) {
    if (admissions.peakOf(greedy.first + i) > admissions.peakOf(closest)) closest = greedy.first + i
  }
  return { stepMs, used: admissions.usedAt(closest, timesMs) }
}
