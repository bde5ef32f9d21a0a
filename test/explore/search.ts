import type { Built } from './copy.js'
import { MOST_AT_ONCE } from './machine.js'
import type { Scenario } from './scenario.js'
import { type Move, Schedule } from './schedule.js'
import { SeenStates } from './seen-states.js'
import { Stage } from './stage.js'

export interface Bounds {
  /** Times that a thread is left in the middle of what it does, for another. @default any number */
  readonly preemptions?: number
  /**
   * Cuts schedules in which a thread does more operations than so many: two that sum at the same time can end each other's
   * sums for ever, if they take turns for ever. @default 1,000
   */
  readonly mostOperations?: number
  /** Give up after so many states. */
  readonly mostStates?: number
  readonly onProgress?: (found: Found) => void
}

export interface Found {
  /** Told apart by memory, by where each thread stands, and (if bounded) by who runs and how often it was preempted. */
  states: number
  /** Ways of getting from the start to rest, or to a state met before. */
  schedules: number
  /** States in which nobody had anything left to do. */
  ends: number
  /** Schedules cut: `mostOperations`. */
  cut: number
  /** Not all was seen: `mostStates`. */
  stopped?: boolean
  /** What should never be, and how to get there. */
  wrong?: string
  schedule?: Schedule
}

const PROGRESS_EVERY = 200_000
const MOST_OPERATIONS = 1_000

/**
 * Plays every schedule of a scenario: depth first, each state once. One step is one operation on shared memory of the
 * shipped code. Moves of the clock and deaths are never counted as preemptions.
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
  readonly #stage: Stage
  readonly #bounds: Bounds
  readonly #most: number
  readonly #seen = new SeenStates()
  readonly #found: Found = { states: 0, schedules: 0, ends: 0, cut: 0 }
  readonly #moves: Move[] = []

  constructor(built: Built, scenario: Scenario, bounds: Bounds, shared?: Uint8Array) {
    this.#stage = new Stage(built, scenario, shared)
    this.shared = this.#stage.machine.shared
    this.#bounds = bounds
    this.#most = bounds.preemptions ?? Number.POSITIVE_INFINITY
  }

  go(): Found | 'again' {
    const stage = this.#stage
    this.#visit(-1, 0)
    return stage.machine.foundShared ? 'again' : this.#found
  }

  /** Goes on from here in every way; false: enough has been seen. */
  #visit(current: number, used: number): boolean {
    const stage = this.#stage
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
    if (stage.atRest) {
      found.schedules++
      found.ends++
      stage.judgeAtRest()
      return this.#goesOn()
    }
    if (stage.clockCanMove && !this.#try({ clock: true }, () => stage.moveClock(), current, used))
      return false
    for (let thread = 0; thread < stage.players.length; thread++) {
      if (!stage.canRun(thread)) continue
      if (!this.#tryThread(thread, current, used)) return false
    }
    return true
  }

  #tryThread(thread: number, current: number, used: number): boolean {
    const stage = this.#stage
    const preempts = current >= 0 && current !== thread && stage.canRun(current)
    const cost = preempts && stage.ledger.isUnderWay(current) ? 1 : 0
    if (used + cost > this.#most) return true
    const player = stage.markOf(thread)
    if (player.length >= (this.#bounds.mostOperations ?? MOST_OPERATIONS)) {
      this.#found.cut++
      // With so few preemptions it was alone for nearly all of them.
      if (this.#most !== Number.POSITIVE_INFINITY) stage.ledger.fail('hang', `thread ${thread}`)
      return this.#goesOn()
    }
    const move = { thread, operations: 0 }
    // Nothing may come in between any more: in one go, instead of a run from the start for each step.
    const free = used + cost === this.#most && !stage.clockCanMove && !stage.scenario.deaths
    const run = () => {
      stage.run(thread, free ? Number.POSITIVE_INFINITY : 1)
      if (stage.machine.done === MOST_AT_ONCE) stage.ledger.fail('hang', `thread ${thread}`)
      move.operations = stage.machine.done
    }
    const goesOn = this.#try(move, run, thread, used + cost)
    stage.backTo(thread, player)
    if (!goesOn) return false
    if (!stage.scenario.deaths || stage.ledger.dead !== 0 || !stage.ledger.isUnderWay(thread)) return true
    return this.#try({ thread, dies: true }, () => stage.ledger.dies(thread), current, used)
  }

  #try(move: Move, run: () => void, current: number, used: number): boolean {
    const { machine } = this.#stage
    const mark = machine.mark()
    run()
    this.#moves.push(move)
    const goesOn = this.#goesOn() && this.#visit(current, used)
    this.#moves.pop()
    machine.backTo(mark)
    return goesOn
  }

  #goesOn(): boolean {
    const { ledger, machine } = this.#stage
    if (machine.foundShared) return false
    if (ledger.wrong === undefined) return true
    this.#found.wrong = ledger.wrong
    this.#found.schedule ??= new Schedule(this.#moves)
    return false
  }

  #isNew(current: number, used: number): boolean {
    const { machine, players } = this.#stage
    let { hash1, hash2 } = machine
    for (const { log, finished } of players) {
      hash1 = Math.imul(hash1 ^ (finished ? 77 : log.hash1), 0x165667b1) ^ (hash1 >>> 13)
      hash2 = Math.imul(hash2 + (finished ? 99 : log.hash2), 0x9e3779b1) ^ (hash2 >>> 16)
    }
    const bounded = this.#most !== Number.POSITIVE_INFINITY
    if (bounded) hash1 = Math.imul(hash1 ^ (current + 2), 0x85ebca6b)
    return this.#seen.add(hash1, hash2, bounded ? used : 0)
  }
}
