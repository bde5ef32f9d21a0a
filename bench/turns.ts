/**
 * Measures pauses of the event loop. Decisions run in slices, with a turn of the loop after each. The slices
 * are short, so that long turns come from other work: the garbage collector, a growing Map, timers.
 */
import { createHistogram, PerformanceObserver } from 'node:perf_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { KeyAt } from './keys.js'
import { type AsyncDecide, awaitAll, type Decide, decideAll } from './timing.js'

/** Makes the decisions of an order from index `from` up to `to`, and returns the number of admissions. */
export type Slice = (order: Int32Array, from: number, to: number) => number | Promise<number>

/** Decisions between two turns: a tenth of a millisecond to one millisecond of work for every contender. */
const SLICE = 256

export function directSlices(keyAt: KeyAt<string>, decide: Decide<string>): Slice {
  return (order, from, to) => decideAll(order, from, to, keyAt, decide)
}

export function awaitedSlices<Answer>(keyAt: KeyAt<string>, peer: AsyncDecide<string, Answer>): Slice {
  return (order, from, to) => awaitAll(order, from, to, keyAt, peer)
}

export interface Turns {
  /**
   * The longest time from one turn of the loop to the next, in milliseconds, a slice of decisions included.
   */
  readonly longestMs: number
  /** The 99th percentile of a turn's duration. */
  readonly p99Ms: number
  /** The longest garbage collection. */
  readonly collectorMs: number
  readonly decisions: number
}

/** Makes each decision of `order` once. @throws Error if one is a refusal */
export function takeTurnsThrough(order: Int32Array, slice: Slice): Promise<Turns> {
  return takeTurns(order, slice, (decisions) => decisions >= order.length)
}

/** Repeats the decisions of `order` until the time has passed. @throws Error if one is a refusal */
export function takeTurnsFor(durationMs: number, order: Int32Array, slice: Slice): Promise<Turns> {
  const end = performance.now() + durationMs
  return takeTurns(order, slice, () => performance.now() >= end)
}

async function takeTurns(
  order: Int32Array,
  slice: Slice,
  isOver: (decisions: number) => boolean,
): Promise<Turns> {
  const turnNs = createHistogram()
  const collector = watchCollector()
  let decisions = 0
  await nextTurn()
  let last = process.hrtime.bigint()
  while (!isOver(decisions)) {
    const from = decisions % order.length
    const to = Math.min(from + SLICE, order.length)
    const allowed = await slice(order, from, to)
    if (allowed !== to - from)
      throw new Error(`${to - from - allowed} of ${to - from} decisions were refused`)
    decisions += to - from
    await nextTurn()
    const now = process.hrtime.bigint()
    turnNs.record(now - last)
    last = now
  }
  return {
    longestMs: turnNs.max / 1e6,
    p99Ms: turnNs.percentile(99) / 1e6,
    collectorMs: await collector.longestMs(),
    decisions,
  }
}

function watchCollector(): { longestMs(): Promise<number> } {
  let longestMs = 0
  const observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longestMs = Math.max(longestMs, duration)
  })
  observer.observe({ entryTypes: ['gc'] })
  return {
    async longestMs() {
      await nextTurn() // entries arrive one turn late
      await nextTurn()
      observer.disconnect()
      return longestMs
    },
  }
}
