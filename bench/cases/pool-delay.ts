import { type IntervalHistogram, monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import {
  type AsyncLimiter,
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type PackedKeys,
} from 'millrace'
import { type Benchmark, type Contender, type Goal, ratioOf } from '../benchmark.js'
import { LOOP_UNITS } from '../in-flight.js'
import { freshKeys, inOrder, randomOrder } from '../keys.js'
import { LIMIT, WINDOW_MS } from '../peers.js'
import { collectGarbage } from '../timing.js'

const KEYS = 1_000_000
const DECISIONS = 500_000
const SIZES = [1_000, 100_000]
const KINDS = ['packed', 'strings'] as const
const ENGINES = ['inline', 'pool'] as const
type Kind = (typeof KINDS)[number]
type Engine = (typeof ENGINES)[number]

/** The interval of the timer that measures delays; a delay is the time by which the timer fires late. */
const RESOLUTION_MS = 1
const KEYS_PER_INSERTION = 10_000
const IDLE_MS = 1_000

const COMPARED = {
  longestMs: 'longest delay',
  p99Ms: '99th percentile of the delay',
  callerNs: "the calling thread's time",
  thousandASecond: 'decisions per second',
}

const OPTIONS: LimiterOptions = { limit: LIMIT, window: WINDOW_MS, maxKeys: KEYS }

const nameOf = (engine: Engine, kind: Kind, size: number) =>
  `${engine}, ${kind === 'packed' ? 'packed keys' : kind}, batches of ${size.toLocaleString('en')}`

export const poolDelay: Benchmark = {
  title: `delays of the calling thread's event loop during ${DECISIONS.toLocaleString('en')} decisions on ${KEYS.toLocaleString('en')} keys`,
  units: {
    longestMs: 'longest delay, ms',
    p99Ms: '99th percentile of the delay, ms',
    callerNs: LOOP_UNITS.callerNs,
    thousandASecond: LOOP_UNITS.thousandASecond,
  },
  contenders: [
    idling(),
    ...SIZES.flatMap((size) =>
      KINDS.flatMap((kind) => ENGINES.map((engine) => deciding(engine, kind, size))),
    ),
  ],
  // Two rounds: one of all contenders takes a minute, mostly to fill the tables.
  rounds: { full: 2, quick: 1 },
  goals: SIZES.flatMap((size) =>
    KINDS.flatMap((kind) =>
      Object.entries(COMPARED).map(
        ([figure, name]): Goal => ({
          label: `${kind}, batches of ${size.toLocaleString('en')}, ${name}: pool / inline`,
          unit: 'x',
          value: ratioOf(nameOf('pool', kind, size), nameOf('inline', kind, size), figure),
        }),
      ),
    ),
  ),
}

/** Decides batch after batch, with a turn of the event loop after each, as on a server with other work. */
function deciding(engine: Engine, kind: Kind, size: number): Contender {
  return {
    name: nameOf(engine, kind, size),
    async measure() {
      const limiter = engine === 'pool' ? createLimiter({ ...OPTIONS, engine }) : createLimiter(OPTIONS)
      const keyAt = freshKeys(KEYS)
      for (let from = 0; from < KEYS; from += KEYS_PER_INSERTION) {
        await limiter.checkMany(Array.from(inOrder(KEYS).subarray(from, from + KEYS_PER_INSERTION), keyAt))
      }
      const order = randomOrder(KEYS, DECISIONS)
      const batches = Array.from({ length: DECISIONS / size }, (_, i) => {
        const strings = Array.from(order.subarray(i * size, (i + 1) * size), keyAt)
        return kind === 'packed' ? limiter.pack(strings) : strings
      })
      await decideAll(limiter, batches.slice(0, Math.ceil(batches.length / 10)))
      collectGarbage()
      await nextTurn()
      const delays = startDelayMonitor()
      const before = performance.eventLoopUtilization()
      const startMs = performance.now()
      await decideAll(limiter, batches)
      const elapsedMs = performance.now() - startMs
      const { active: activeMs } = performance.eventLoopUtilization(before)
      delays.disable()
      return {
        ...delayFigures(delays),
        callerNs: (1e6 * activeMs) / DECISIONS,
        thousandASecond: DECISIONS / elapsedMs,
      }
    },
  }
}

/** A sleeping event loop also wakes late: the lower bound for the other contenders. */
function idling(): Contender {
  return {
    name: 'idle event loop',
    async measure() {
      const delays = startDelayMonitor()
      await sleep(IDLE_MS)
      delays.disable()
      return { ...delayFigures(delays), callerNs: 0, thousandASecond: 0 }
    },
  }
}

function startDelayMonitor(): IntervalHistogram {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delays.enable()
  return delays
}

function delayFigures(delays: IntervalHistogram): { longestMs: number; p99Ms: number } {
  return { longestMs: delayMs(delays.max), p99Ms: delayMs(delays.percentile(99)) }
}

function delayMs(ns: number): number {
  return Math.max(0, ns / 1e6 - RESOLUTION_MS)
}

/** @throws Error if a decision is a refusal */
async function decideAll(
  limiter: Limiter | AsyncLimiter,
  batches: readonly (PackedKeys | string[])[],
): Promise<void> {
  for (const batch of batches) {
    const { allowed } = await limiter.checkMany(batch)
    if (allowed.includes(0)) throw new Error('a decision was refused')
    await nextTurn()
  }
}
