import { type IntervalHistogram, monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import {
  type AsyncLimiter,
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type PackedKeys,
} from 'millrace'
import { type Benchmark, type Contender, type Goal, timesOf } from '../benchmark.js'
import { LOOP_UNITS } from '../in-flight.js'
import { inOrder, madeAnew, randomOrder } from '../keys.js'
import { LIMIT, WINDOW_MS } from '../peers.js'
import { collectGarbage } from '../timing.js'

const KEYS = 1_000_000
const DECISIONS = 1_000_000
const SIZES = [1_000, 100_000]
const KINDS = ['packed', 'strings'] as const
const ENGINES = ['inline', 'pool'] as const
type Kind = (typeof KINDS)[number]
type Engine = (typeof ENGINES)[number]

/** How often the loop is looked at; what a look comes late is the delay. */
const RESOLUTION_MS = 1
const FILLING = 10_000
const IDLE_MS = 1_000

const COMPARED = {
  longestMs: 'longest delay',
  p99Ms: '99 of 100 delays',
  callerNs: "the calling thread's time",
  thousandASecond: 'decisions a second',
}

const OPTIONS: LimiterOptions = { limit: LIMIT, window: WINDOW_MS, maxKeys: KEYS }

const nameOf = (engine: Engine, kind: Kind, size: number) =>
  `${engine}, ${kind === 'packed' ? 'packed keys' : kind}, batches of ${size.toLocaleString('en')}`

export const poolDelay: Benchmark = {
  title: `the calling thread's event loop while ${DECISIONS.toLocaleString('en')} random keys of as many are decided`,
  units: {
    longestMs: 'longest delay, ms',
    p99Ms: '99 of 100 delays at most, ms',
    callerNs: LOOP_UNITS.callerNs,
    thousandASecond: LOOP_UNITS.thousandASecond,
  },
  contenders: [
    idling(),
    ...SIZES.flatMap((size) =>
      KINDS.flatMap((kind) => ENGINES.map((engine) => deciding(engine, kind, size))),
    ),
  ],
  goals: SIZES.flatMap((size) =>
    KINDS.flatMap((kind) =>
      Object.entries(COMPARED).map(
        ([figure, said]): Goal => ({
          what: `${kind}, batches of ${size.toLocaleString('en')}, ${said}: pool / inline`,
          unit: 'x',
          value: timesOf(nameOf('pool', kind, size), nameOf('inline', kind, size), figure),
        }),
      ),
    ),
  ),
}

/** Batch after batch, a turn of the loop after each: a server has others to serve. */
function deciding(engine: Engine, kind: Kind, size: number): Contender {
  return {
    name: nameOf(engine, kind, size),
    async measure() {
      const limiter = engine === 'pool' ? createLimiter({ ...OPTIONS, engine }) : createLimiter(OPTIONS)
      const keyAt = madeAnew(KEYS)
      for (let from = 0; from < KEYS; from += FILLING) {
        await limiter.checkMany(Array.from(inOrder(KEYS).subarray(from, from + FILLING), keyAt))
      }
      const order = randomOrder(KEYS, DECISIONS)
      const batches = Array.from({ length: DECISIONS / size }, (_, i) => {
        const strings = Array.from(order.subarray(i * size, (i + 1) * size), keyAt)
        return kind === 'packed' ? limiter.pack(strings) : strings
      })
      await decideAll(limiter, batches.slice(0, Math.ceil(batches.length / 10)))
      collectGarbage()
      await nextTurn()
      const delays = watched()
      const before = performance.eventLoopUtilization()
      const startMs = performance.now()
      await decideAll(limiter, batches)
      const elapsedMs = performance.now() - startMs
      const { active: activeMs } = performance.eventLoopUtilization(before)
      delays.disable()
      return {
        ...lateness(delays),
        callerNs: (1e6 * activeMs) / DECISIONS,
        thousandASecond: DECISIONS / elapsedMs,
      }
    },
  }
}

/** An event loop that sleeps is woken late, too: what those below can't be better than. */
function idling(): Contender {
  return {
    name: 'a loop with nothing to do',
    async measure() {
      const delays = watched()
      await sleep(IDLE_MS)
      delays.disable()
      return { ...lateness(delays), callerNs: 0, thousandASecond: 0 }
    },
  }
}

function watched(): IntervalHistogram {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delays.enable()
  return delays
}

function lateness(delays: IntervalHistogram): { longestMs: number; p99Ms: number } {
  return { longestMs: late(delays.max), p99Ms: late(delays.percentile(99)) }
}

function late(ns: number): number {
  return Math.max(0, ns / 1e6 - RESOLUTION_MS)
}

/** @throws Error where one is refused */
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
