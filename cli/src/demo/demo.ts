import { createLimiter, type Duration } from 'millrace'
import { monotonicClock } from 'millrace/internal'
import { Admissions } from './admissions.js'
import { type Answers, addAnswers, type Kind, load, nothing, Tally } from './load.js'
import type { Engine } from './messages.js'
import { Servers } from './servers.js'

export interface DemoOptions {
  readonly seconds: number
  /** At least 2: a polite one and a greedy one. */
  readonly clients: number
  readonly limit: number
  readonly window: Duration
  readonly threads: number
  readonly engine: Engine
  /** 0: any free one; with more threads, also those that follow. */
  readonly port: number
}

/** What the clients of one kind asked for and got of the server with the limiter, from its first request on. */
export interface KindResult extends Answers {
  readonly clients: number
  readonly requests: number
  /** The most that one of them was admitted in any window. */
  readonly peak: number
}

/** What a server was like under the load, its warm-up left out. */
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
  /** The most that any client was admitted in any window, by the log of the moments at which decisions took effect. */
  readonly mostInAnyWindow: number
  readonly held: boolean
  /** It was stopped before its time. */
  readonly stoppedEarly: boolean
  /** For the greedy client that came closest to the limit: admissions in the window that ends at each step. */
  readonly course: { readonly stepMs: number; readonly used: readonly number[] }
}

/** How far it has come, for a line on the terminal. */
export interface DemoProgress {
  readonly server: 'with' | 'without'
  readonly secondsLeft: number
  /** Of this slice. */
  readonly tally: Tally
}

/** One in so many clients is greedy. */
const ONE_GREEDY_IN = 5
/** Turns are about this long; each server has at least one. */
const TURN_MS = 2_500
/** V8 compiles the server while it is warming up: both have that behind them before the first figure. */
const WARM_UP = 0.1
const LONGEST_WARM_UP_MS = 1_000
const COURSE_STEP_MS = 100
const LONGEST_COURSE = 1_000

/**
 * Loads a server with a limiter and the same without it, in turns, and judges the limiter by its own log. Ends early when
 * `signal` does, with what was seen until then.
 * @throws UsageError for a port that can't be had
 */
export async function runDemo(
  options: DemoOptions,
  signal: AbortSignal,
  onProgress: (progress: DemoProgress) => void,
): Promise<DemoResult> {
  const { limit, window, clients, threads, engine, seconds } = options
  const limiter = createLimiter({ limit, window, maxKeys: Math.max(clients, 1_000) })
  const { windowMs, granularityMs } = limiter.rule
  const turns = turnsOf(seconds * 1000)
  const kinds = kindsOf(clients, limit, windowMs, turns.length / 2)
  const servers = await Servers.start(limiter.share(), engine, threads, options.port)
  const admissions = new Admissions(windowMs)
  const asked = { polite: nothing(), greedy: nothing() }
  const sides = {
    without: { tally: new Tally(), longestPauseMs: 0 },
    with: { tally: new Tally(), longestPauseMs: 0 },
  }
  const spans: { fromMs: number; toMs: number }[] = []
  try {
    let msLeft = seconds * 1000
    for (const { server, ms, isWarmUp } of turns) {
      if (signal.aborted) break
      msLeft -= ms
      const fromMs = monotonicClock.now()
      const toMs = fromMs + ms
      await servers.startSlice()
      const path = server === 'with' ? '/limited' : '/open'
      const tally = await load(servers.ports, path, kinds, ms, signal, (soFar) =>
        onProgress({ server, secondsLeft: (msLeft + toMs - monotonicClock.now()) / 1000, tally: soFar }),
      )
      const slices = await servers.stopSlice()
      for (const slice of slices) admissions.add(slice)
      if (server === 'with') addAnswers(asked, tally.answers)
      if (isWarmUp) continue
      const side = sides[server]
      side.tally.add(tally)
      side.longestPauseMs = Math.max(side.longestPauseMs, ...slices.map((slice) => slice.longestPauseMs))
      if (server === 'with') spans.push({ fromMs, toMs: fromMs + tally.ms })
    }
  } finally {
    await servers.close()
    await limiter.close()
  }
  const [polite, greedy] = kinds.map((kind) => kindResult(kind, asked[kind.name], admissions)) as [
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
    stoppedEarly: signal.aborted,
    course: courseOf(greedyKind, admissions, spans),
  }
}

interface Turn {
  readonly server: 'with' | 'without'
  readonly ms: number
  readonly isWarmUp: boolean
}

/** Who is loaded when: a short warm-up of both, then without, with, with, without: being first or last favours neither. */
function turnsOf(totalMs: number): Turn[] {
  const warmUpMs = Math.min(totalMs * WARM_UP, LONGEST_WARM_UP_MS)
  const pairs = Math.max(1, Math.round((totalMs - warmUpMs) / (2 * TURN_MS)))
  const pair = (ms: number, isWarmUp: boolean, withFirst: boolean): Turn[] => {
    const [first, second] = withFirst ? (['with', 'without'] as const) : (['without', 'with'] as const)
    return [
      { server: first, ms, isWarmUp },
      { server: second, ms, isWarmUp },
    ]
  }
  const turnMs = (totalMs - warmUpMs) / (2 * pairs)
  const measured = Array.from({ length: pairs }, (_, i) => pair(turnMs, false, i % 2 === 1))
  return [...pair(warmUpMs / 2, true, false), ...measured.flat()]
}

/** Polite clients ask for a third of what they may, so that they are never refused however their requests bunch. */
function kindsOf(clients: number, limit: number, windowMs: number, turns: number): Kind[] {
  const greedy = Math.max(1, Math.floor(clients / ONE_GREEDY_IN))
  const third = Math.min(limit, (limit * 1000) / windowMs) / 3
  return [
    {
      name: 'polite',
      first: 0,
      clients: clients - greedy,
      perSecond: Math.max(1, Math.floor(third)),
      most: third < 1 ? Math.max(1, Math.floor(limit / (3 * turns))) : undefined,
    },
    { name: 'greedy', first: clients - greedy, clients: greedy, perSecond: undefined, most: undefined },
  ]
}

function kindResult(kind: Kind, answers: Answers, admissions: Admissions): KindResult {
  let peak = 0
  for (let i = 0; i < kind.clients; i++) peak = Math.max(peak, admissions.peakOf(kind.first + i))
  return { clients: kind.clients, requests: answers.admitted + answers.refused, peak, ...answers }
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

/** Of the time under the limiter alone, its turns put together. */
function courseOf(
  greedy: Kind,
  admissions: Admissions,
  spans: readonly { fromMs: number; toMs: number }[],
): DemoResult['course'] {
  const totalMs = spans.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0)
  const stepMs = Math.max(COURSE_STEP_MS, totalMs / LONGEST_COURSE)
  const moments = spans.flatMap(({ fromMs, toMs }) =>
    Array.from({ length: Math.floor((toMs - fromMs) / stepMs) }, (_, i) => fromMs + (i + 1) * stepMs),
  )
  let closest = greedy.first
  for (let i = 1; i < greedy.clients; i++) {
    if (admissions.peakOf(greedy.first + i) > admissions.peakOf(closest)) closest = greedy.first + i
  }
  return { stepMs, used: admissions.usedAt(closest, moments) }
}
