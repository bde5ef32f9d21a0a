import type { Built } from './copy.js'
import { MOST_AT_ONCE } from './machine.js'
import type { Scenario } from './scenario.js'
import { type Move, Schedule } from './schedule.js'
import { SeenStates } from './seen-states.js'
import { Simulation } from './simulation.js'

export interface Bounds {
  /** How often a thread may be preempted in the middle of an operation. @default any number of times */
  readonly preemptions?: number
  /**
   * Cuts schedules in which a thread does more operations than this. Two threads that sum at the same time
   * can invalidate each other's sums for ever, if they alternate for ever. @default 1,000
   */
  readonly mostOperations?: number
  /** Stops the search after this many states. */
  readonly mostStates?: number
  readonly onProgress?: (found: Found) => void
}

export interface Found {
  /**
   * States differ in memory, in where each thread is, and (if bounded) in the running thread and the
   * preemptions.
   */
  states: number
  /** Paths from the start to a state at rest, or to a state visited before. */
  schedules: number
  /** States in which every thread has ended. */
  ends: number
  /** Schedules that were cut by `mostOperations`. */
  cut: number
  /** `mostStates` stopped the search. */
  stopped?: boolean
  /** The violation, and the schedule that leads to it. */
  wrong?: string
  schedule?: Schedule
}

const PROGRESS_EVERY = 200_000
const MOST_OPERATIONS = 1_000

/**
 * Runs every schedule of a scenario: depth first, each state once. One step is one operation on shared memory
 * of the shipped code. Clock moves and deaths do not count as preemptions.
 */
export function search(built: Built, scenario: Scenario, bounds: Bounds = {}): Found {
  let shared: Uint8Array | undefined
  for (;;) {
    const pass = new Search(built, scenario, bounds, shared)
    const found = pass.go()
    if (found !== 'again') return found
    shared = pass.shared
  }
}

class Search {
  readonly shared: Uint8Array
  readonly #simulation: Simulation
  readonly #bounds: Bounds
  readonly #most: number
  readonly #seen = new SeenStates()
  readonly #found: Found = { states: 0, schedules: 0, ends: 0, cut: 0 }
  readonly #moves: Move[] = []

  constructor(built: Built, scenario: Scenario, bounds: Bounds, shared?: Uint8Array) {
    this.#simulation = new Simulation(built, scenario, shared)
    this.shared = this.#simulation.machine.shared
    this.#bounds = bounds
    this.#most = bounds.preemptions ?? Number.POSITIVE_INFINITY
  }

  go(): Found | 'again' {
    const simulation = this.#simulation
    this.#visit(-1, 0)
    return simulation.machine.foundShared ? 'again' : this.#found
  }

  /** Continues from this state in every possible way. False ends the search. */
  #visit(current: number, used: number): boolean {
    const simulation = this.#simulation
    const found = this.#found
    if (!this.#isNew(current, used)) {
      found.schedules++
      return true
    }
    if (++found.states % PROGRESS_EVERY === 0) this.#bounds.onProgress?.(found)
    if (found.states > (this.#bounds.mostStates ?? Number.POSITIVE_INFINITY)) {
      found.stopped = true
      return false
    }
    if (simulation.atRest) {
      found.schedules++
      found.ends++
      simulation.judgeAtRest()
      return this.#goesOn()
    }
    if (simulation.clockCanMove && !this.#try({ clock: true }, () => simulation.moveClock(), current, used))
      return false
    for (let thread = 0; thread < simulation.threads.length; thread++) {
      if (!simulation.canRun(thread)) continue
      if (!this.#tryThread(thread, current, used)) return false
    }
    return true
  }

  #tryThread(thread: number, current: number, used: number): boolean {
    const simulation = this.#simulation
    const preempts = current >= 0 && current !== thread && simulation.canRun(current)
    const cost = preempts && simulation.ledger.isUnderWay(current) ? 1 : 0
    if (used + cost > this.#most) return true
    const own = simulation.markOf(thread)
    if (own.length >= (this.#bounds.mostOperations ?? MOST_OPERATIONS)) {
      this.#found.cut++
      // With so few preemptions the thread ran alone for nearly all of its operations: it hangs.
      if (this.#most !== Number.POSITIVE_INFINITY) simulation.ledger.fail('hang', `thread ${thread}`)
      return this.#goesOn()
    }
    const move = { thread, operations: 0 }
    // No other thread may run any more: finish this one in a single run instead of one run for each step.
    const free = used + cost === this.#most && !simulation.clockCanMove && !simulation.scenario.deaths
    const run = () => {
      simulation.run(thread, free ? Number.POSITIVE_INFINITY : 1)
      if (simulation.machine.done === MOST_AT_ONCE) simulation.ledger.fail('hang', `thread ${thread}`)
      move.operations = simulation.machine.done
    }
    const goesOn = this.#try(move, run, thread, used + cost)
    simulation.backTo(thread, own)
    if (!goesOn) return false
    if (!simulation.scenario.deaths || simulation.ledger.dead !== 0 || !simulation.ledger.isUnderWay(thread))
      return true
    return this.#try({ thread, dies: true }, () => simulation.ledger.dies(thread), current, used)
  }

  #try(move: Move, run: () => void, current: number, used: number): boolean {
    const { machine } = this.#simulation
    const mark = machine.mark()
    run()
    this.#moves.push(move)
    const goesOn = this.#goesOn() && this.#visit(current, used)
    this.#moves.pop()
    machine.backTo(mark)
    return goesOn
  }

  #goesOn(): boolean {
    const { ledger, machine } = this.#simulation
    if (machine.foundShared) return false
    if (ledger.wrong === undefined) return true
    this.#found.wrong = ledger.wrong
    this.#found.schedule ??= new Schedule(this.#moves)
    return false
  }

  #isNew(current: number, used: number): boolean {
    const { machine, threads } = this.#simulation
    let { hash1, hash2 } = machine
    for (const { log, finished } of threads) {
      hash1 = Math.imul(hash1 ^ (finished ? 77 : log.hash1), 0x165667b1) ^ (hash1 >>> 13)
      hash2 = Math.imul(hash2 + (finished ? 99 : log.hash2), 0x9e3779b1) ^ (hash2 >>> 16)
    }
    const bounded = this.#most !== Number.POSITIVE_INFINITY
    if (bounded) hash1 = Math.imul(hash1 ^ (current + 2), 0x85ebca6b)
    return this.#seen.add(hash1, hash2, bounded ? used : 0)
  }
}
