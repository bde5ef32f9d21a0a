import { shapeFor } from '#millrace/memory/layout.js'
import { random } from '../algorithms/random.js'
import type { Built } from './copy.js'
import {
  type By,
  byHandle,
  cancel,
  check,
  checkBy,
  commit,
  type Forbidden,
  type FurtherRule,
  giveBack,
  type Op,
  refund,
  reserve,
  type Scenario,
} from './scenario.js'
import { ANYTHING } from './scenarios/deciding.js'
import { type Move, Schedule } from './schedule.js'
import { Simulation } from './simulation.js'

export interface WalkFound {
  schedules: number
  scenarios: number
  /** Operations on shared memory. */
  operations: number
  wrong?: string
  scenario?: Scenario
  schedule?: Schedule
}

interface Effort {
  schedules: number
  seed: number
  onProgress?: (found: WalkFound) => void
}

const SCHEDULES_PER_SCENARIO = 250

/**
 * Runs random schedules of random scenarios on production shapes: 16 ways a set, up to 60 buckets. The same
 * seed gives the same schedules. A thread is preempted after a random number of operations, usually a small
 * one.
 */
export function walk(built: Built, { schedules, seed, onProgress }: Effort): WalkFound {
  const next = random(seed)
  const found: WalkFound = { schedules: 0, scenarios: 0, operations: 0 }
  while (found.schedules < schedules) {
    const scenario = randomScenario(next)
    const simulation = new Simulation(built, scenario)
    found.scenarios++
    for (let i = 0; i < SCHEDULES_PER_SCENARIO && found.schedules < schedules; i++) {
      simulation.reset()
      found.schedules++
      const { moves, wrong } = randomSchedule(simulation, next, found)
      if (wrong === undefined) continue
      return { ...found, wrong, scenario, schedule: new Schedule(moves) }
    }
    onProgress?.(found)
  }
  return found
}

function randomSchedule(
  simulation: Simulation,
  next: () => number,
  found: WalkFound,
): { moves: Move[]; wrong?: string } {
  const moves: Move[] = []
  const { ledger, machine } = simulation
  const clockMoves = next() * 0.3
  const most = [4, 40, 40, 200][Math.floor(next() * 4)]!
  for (let idle = 0; !simulation.atRest && idle < 10_000; idle++) {
    if (simulation.clockCanMove && next() < clockMoves) {
      moves.push({ clock: true })
      simulation.moveClock()
    }
    const thread = Math.floor(next() * simulation.threads.length)
    if (!simulation.canRun(thread)) continue
    if (simulation.scenario.deaths && ledger.dead === 0 && ledger.isUnderWay(thread) && next() < 0.05) {
      moves.push({ thread, dies: true })
      ledger.dies(thread)
      continue
    }
    const operations = 1 + Math.floor(next() ** 2 * most)
    moves.push({ thread, operations })
    simulation.run(thread, Number.POSITIVE_INFINITY, operations)
    found.operations += machine.done
    if (ledger.wrong !== undefined) return { moves, wrong: ledger.wrong }
  }
  if (!simulation.atRest) return { moves, wrong: 'stuck: threads have not ended after 10,000 turns' }
  simulation.judgeAtRest()
  return ledger.wrong === undefined ? { moves } : { moves, wrong: ledger.wrong }
}

function randomScenario(next: () => number): Scenario {
  const upTo = (most: number) => 1 + Math.floor(next() * most)
  const one = <T>(of: readonly T[]): T => of[Math.floor(next() * of.length)]!
  const buckets = one([60, 60, 10, 3, 1])
  const sums = one(['linear', 'linear', 'blocks', 'fenwick'] as const)
  const { ring } = shapeFor(buckets, buckets, 2, sums)
  const limit = upTo(4)
  const keys = upTo(3)
  const start = 1_000 + Math.floor(next() * 1_000_000)
  const times = [start]
  for (let i = upTo(4); i > 1; i--) {
    const step = one([next(), 1, 1, 2, buckets, ring, ring + 1, 64 * ring, 40 * ring + 1])
    times.push(times.at(-1)! + step)
  }
  const before: [number, Op][] = []
  for (let i = upTo(6), at = start - 2 * ring; i > 1 && at < start; i--, at += upTo(ring)) {
    before.push([at, check(upTo(keys), upTo(limit))])
  }
  const adjusts = next() < 0.4
  const further =
    next() < 0.3
      ? Array.from({ length: upTo(3) - 1 }, () => ({ limit: upTo(4), buckets: one([60, 3, 1]) }))
      : undefined
  const threads = Array.from({ length: 1 + upTo(3) }, () =>
    further === undefined
      ? Array.from({ length: upTo(3) }, () => randomOp(next, keys, limit, adjusts))
      : randomOps(next, keys, limit, adjusts, further),
  )
  const scenario: Omit<Scenario, 'forbidden'> = {
    times,
    threads,
    before,
    buckets,
    sums,
    limit,
    edge: next() < 0.2 ? 'smooth' : 'strict',
    onFull: one(['evict', 'deny'] as const),
    deaths: next() < 0.3,
    ...(further === undefined && next() < 0.2 ? { ahead: threads.map(() => one([0, 0.5, 1])) } : {}),
    gaps: [63 * ring, 64 * ring + 1, 256 * ring],
    ...(further && { further }),
  }
  return { ...scenario, forbidden: forbiddenFor(scenario) }
}

function randomOp(next: () => number, keys: number, limit: number, adjusts: boolean): Op {
  const key = 1 + Math.floor(next() * keys)
  const cost = 1 + Math.floor(next() * limit)
  const pick = next()
  if (!adjusts || pick < 0.4) return pick < 0.2 ? byHandle(key, cost) : check(key, cost)
  if (pick < 0.5) return giveBack
  if (pick < 0.6) return refund(cost, key)
  if (pick < 0.65) return { do: 'penalize', key, cost }
  if (pick < 0.7) return { do: 'block', key, ms: 1_000 * cost }
  if (pick < 0.75) return { do: 'unblock', key }
  if (pick < 0.8) return { do: 'clear', key }
  if (pick < 0.85) return { do: 'update', limit: cost }
  if (pick < 0.9) return { do: 'batch', keys: [key, 1, key] }
  return pick < 0.95 ? { do: 'peek', key, cost } : { do: 'attach' }
}

/** Operations of one thread on limiters and groups. A reservation is settled before the next decision. */
function randomOps(
  next: () => number,
  keys: number,
  limit: number,
  adjusts: boolean,
  further: readonly FurtherRule[],
): Op[] {
  const upTo = (most: number) => 1 + Math.floor(next() * most)
  const key = upTo(keys)
  const cost = upTo(limit)
  const ways: (By | undefined)[] = [
    undefined,
    undefined,
    'group',
    'reversed group',
    { rule: upTo(1 + further.length) - 1 },
  ]
  const by = ways[Math.floor(next() * ways.length)]
  const decides = by === undefined ? check(key, cost) : checkBy(by, key, cost)
  const adjusted: Op[] = [
    giveBack,
    refund(cost, key),
    { do: 'penalize', key, cost },
    { do: 'clear', key },
    { do: 'clear all' },
  ]
  const settled = [commit(cost - 1), commit(cost), commit(cost + 1), cancel][Math.floor(next() * 4)]!
  const first = next() < 0.5 ? [decides] : [reserve(cost, by, key), settled]
  if (!adjusts || next() < 0.3) return [...first, check(upTo(keys), upTo(limit))]
  const change = adjusted[Math.floor(next() * adjusted.length)]!
  return next() < 0.5 && change !== giveBack ? [change, ...first] : [...first, change]
}

/** The violations that no operation excuses, and those that none of the scenario's operations excuses. */
function forbiddenFor({ threads, edge, ahead, further }: Omit<Scenario, 'forbidden'>): Forbidden[] {
  const ops = new Set(threads.flat().map((op) => op.do))
  const excused = new Set<Forbidden>()
  const takesOut = (['refund', 'clear', 'clear all', 'give back', 'block', 'unblock'] as const).some((what) =>
    ops.has(what),
  )
  if (takesOut || edge === 'smooth' || ahead !== undefined) {
    excused.add('early')
    excused.add('refused at rest')
  }
  if (ops.has('update')) excused.add('early')
  // The way of an admission may have another key when the last rule decides.
  if (further !== undefined)
    for (const what of ['wrong cell', 'early', 'refused at rest'] as const) excused.add(what)
  return ANYTHING.filter((what) => !excused.has(what))
}
