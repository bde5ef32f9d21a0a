// What is asked of each recipe. All times are real.
import { setTimeout as sleep } from 'node:timers/promises'
import { Admissions } from 'millrace-cli/dist/demo/admissions.js'
import { random } from '../../random.js'
import type { Bound, Caller, Outcome, Recipe } from './recipes.js'

/** Opens callers, and closes them at the end. */
async function withCallers<T>(
  [open, port]: readonly [Recipe, number],
  count: number,
  bound: Bound,
  use: (callers: readonly Caller[]) => Promise<T>,
): Promise<T> {
  const callers = await Promise.all(Array.from({ length: count }, () => open(port, bound)))
  try {
    return await use(callers)
  } finally {
    await Promise.all(callers.map((caller) => caller.close()))
  }
}

/** Each caller makes its next call after its last one, until there were `count`. */
async function share(callers: readonly Caller[], key: string, count: number): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  let next = 0
  const calls = async (caller: Caller) => {
    while (next++ < count) outcomes.push(await caller.decide(key))
  }
  await Promise.all(callers.map(calls))
  return outcomes
}

/** The most admissions in any window. */
function fullest(outcomes: readonly Outcome[], windowMs: number): number {
  const log = new Admissions(windowMs)
  const atMs = Float64Array.from(outcomes.filter(({ allowed }) => allowed).map((each) => each.atMs))
  log.add({ clients: new Int32Array(atMs.length), atMs })
  return log.peakOf(0)
}

export interface Speed {
  readonly perSecond: number
  readonly tries: number
}

/** Decisions a second and tries for each, while so many connections decide for one key, and all are admitted. */
export function speed(at: readonly [Recipe, number], connections: number, ms: number): Promise<Speed> {
  const bound = { limit: 1_000_000, windowMs: 1_000 }
  return withCallers(at, connections, bound, async (callers) => {
    let decisions = 0
    let tries = 0
    const startMs = performance.now()
    const calls = async (caller: Caller) => {
      while (decisions === 0 || performance.now() - startMs < ms) {
        const outcome = await caller.decide(`speed ${connections}`)
        tries += outcome.tries
        decisions++
      }
    }
    await Promise.all(callers.map(calls))
    return { perSecond: (1_000 * decisions) / (performance.now() - startMs), tries: tries / decisions }
  })
}

const RACES = 3

/** The most admitted in any window while so many connections ask at once for a new key, several times. */
export function race(at: readonly [Recipe, number], connections: number, limit: number): Promise<number> {
  const bound = { limit, windowMs: 60_000 }
  return withCallers(at, connections, bound, async (callers) => {
    let most = 0
    for (let i = 0; i < RACES; i++)
      most = Math.max(most, fullest(await share(callers, `race ${i}`, 2 * limit), bound.windowMs))
    return most
  })
}

const CALLERS = 8
/** Requests of a burst, in limits. */
const BURST = 1.2

interface Burst {
  /** In windows since the start. */
  readonly at: number
  readonly count: number
}

/** The most admitted in any window after such bursts for a new key. */
function play(
  at: readonly [Recipe, number],
  bound: Bound,
  key: string,
  startOf: (nowMs: number) => number,
  all: readonly Burst[],
): Promise<number> {
  return withCallers(at, CALLERS, bound, async (callers) => {
    const startMs = startOf(Date.now())
    const outcomes: Outcome[] = []
    for (const burst of all) {
      await sleep(Math.max(0, startMs + burst.at * bound.windowMs - Date.now()))
      outcomes.push(...(await share(callers, key, burst.count)))
    }
    return fullest(outcomes, bound.windowMs)
  })
}

/**
 * The most admitted in any window after bursts at the moments that are worst for windows that begin with the first
 * request, and for windows by the clock.
 */
export async function bursts(at: readonly [Recipe, number], bound: Bound): Promise<number> {
  const { limit, windowMs } = bound
  const count = BURST * limit
  const byFirst = play(at, bound, 'first request', (nowMs) => nowMs, [
    { at: 0, count: 1 },
    { at: 0.5, count },
    { at: 1.05, count },
  ])
  const byClock = play(at, bound, 'clock', (nowMs) => windowMs * Math.ceil(nowMs / windowMs), [
    { at: 0.97, count },
    { at: 1.95, count },
  ])
  return Math.max(await byFirst, await byClock)
}

/** The most admitted in any window, from two windows after a process has died in its decision. */
export function afterDeath(at: readonly [Recipe, number], bound: Bound): Promise<number> {
  const key = 'death'
  const count = BURST * bound.limit
  return withCallers(at, CALLERS + 1, bound, async ([dying, ...callers]) => {
    await dying!.die(key)
    await share(callers, key, count)
    await sleep(2 * bound.windowMs)
    return fullest(await share(callers, key, count), bound.windowMs)
  })
}

const SEED = 20_261_125

/** The most admitted in any window of random (Poisson) traffic at the limit, of several keys. */
export function poisson(
  at: readonly [Recipe, number],
  bound: Bound,
  keys: number,
  ms: number,
): Promise<number> {
  return withCallers(at, CALLERS * keys, bound, async (callers) => {
    const next = random(SEED)
    const meanMs = bound.windowMs / bound.limit
    const endMs = performance.now() + ms
    const traffic = async (key: number) => {
      // A caller that is busy makes the call afterwards.
      const idle = Array.from({ length: CALLERS }, () => Promise.resolve())
      const outcomes: Outcome[] = []
      let dueMs = performance.now()
      for (let i = 0; dueMs < endMs; i++) {
        dueMs -= meanMs * Math.log(1 - next())
        if (dueMs > performance.now()) await sleep(dueMs - performance.now())
        const caller = callers[key * CALLERS + (i % CALLERS)]!
        idle[i % CALLERS] = idle[i % CALLERS]!.then(async () => {
          outcomes.push(await caller.decide(`poisson ${key}`))
        })
      }
      await Promise.all(idle)
      return fullest(outcomes, bound.windowMs)
    }
    return Math.max(...(await Promise.all(Array.from({ length: keys }, (_, key) => traffic(key)))))
  })
}
