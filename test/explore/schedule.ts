import type { Built } from './copy.js'
import { MOST_AT_ONCE } from './machine.js'
import type { Scenario } from './scenario.js'
import { Simulation } from './simulation.js'

/** One move of a schedule: a thread does a number of operations, a thread dies, or the clock advances. */
export type Move = { thread: number; operations: number } | { thread: number; dies: true } | { clock: true }

/**
 * A schedule in the form in which it is printed and parsed. In `0*12 clock 1*3 0+ 1*5` thread 0 does twelve
 * operations, the clock advances, thread 1 does three operations, thread 0 dies, and thread 1 does five more.
 * Threads that are unfinished at the end of the schedule then run one after another.
 */
export class Schedule {
  readonly moves: readonly Move[]

  constructor(moves: readonly Move[]) {
    const merged: Move[] = []
    for (const move of moves) {
      const last = merged.at(-1)
      if ('operations' in move && last && 'operations' in last && last.thread === move.thread)
        merged[merged.length - 1] = { ...last, operations: last.operations + move.operations }
      else if (!('operations' in move) || move.operations > 0) merged.push({ ...move })
    }
    this.moves = merged
  }

  /** @throws Error if `text` is not a schedule */
  static parse(text: string): Schedule {
    const moves = text
      .trim()
      .split(/\s+/)
      .filter((word) => word !== '')
      .map((word): Move => {
        if (word === 'clock') return { clock: true }
        const [, thread, operations] = /^(\d+)(?:\*(\d+)|\+)$/.exec(word) ?? []
        if (thread === undefined) throw new Error(`not a move of a schedule: ${word}`)
        return operations === undefined
          ? { thread: Number(thread), dies: true }
          : { thread: Number(thread), operations: Number(operations) }
      })
    return new Schedule(moves)
  }

  toString(): string {
    return this.moves
      .map((move) =>
        'clock' in move ? 'clock' : 'dies' in move ? `${move.thread}+` : `${move.thread}*${move.operations}`,
      )
      .join(' ')
  }

  /** The number of moves. Fewer moves are easier to read. */
  get length(): number {
    return this.moves.length
  }
}

/** Replays a schedule and finishes the threads. Returns the violation, if there was one. */
export function replay(built: Built, scenario: Scenario, schedule: Schedule): string | undefined {
  return play(new Simulation(built, scenario), schedule)
}

/**
 * Replays a schedule and prints every operation: the thread, the word, its value before and its value after.
 */
export function explain(
  built: Built,
  scenario: Scenario,
  schedule: Schedule,
  print: (line: string) => void,
): void {
  const simulation = new Simulation(built, scenario)
  simulation.machine.trace = (thread, index, before, after) => {
    const change = before === after ? '' : ` -> ${simulation.describe(index, after)}`
    print(`thread ${thread}  ${simulation.nameOf(index)}: ${simulation.describe(index, before)}${change}`)
  }
  print(play(simulation, schedule, print) ?? 'nothing went wrong')
}

/** Like {@link replay}, on a simulation at its start. */
export function play(
  simulation: Simulation,
  schedule: Schedule,
  print: (line: string) => void = () => {},
): string | undefined {
  const { ledger } = simulation
  for (const move of schedule.moves) {
    if (!('operations' in move)) print('clock' in move ? 'the clock moves' : `thread ${move.thread} dies`)
    if ('clock' in move) {
      if (simulation.clockCanMove) simulation.moveClock()
    } else if ('dies' in move) {
      if (simulation.canRun(move.thread) && ledger.dead === 0) ledger.dies(move.thread)
    } else if (simulation.canRun(move.thread)) {
      simulation.run(move.thread, Number.POSITIVE_INFINITY, move.operations)
      if (simulation.machine.done === MOST_AT_ONCE) return `hang: thread ${move.thread}`
    }
    if (ledger.wrong !== undefined) return ledger.wrong
  }
  for (let thread = 0; thread < simulation.threads.length; thread++) {
    if (simulation.canRun(thread)) simulation.run(thread, Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER)
    if (ledger.wrong !== undefined) return ledger.wrong
    if (simulation.canRun(thread)) return `hang: thread ${thread}`
  }
  simulation.judgeAtRest()
  return ledger.wrong
}

/**
 * Finds a shorter schedule with the same kind of violation (the text before the colon). It removes one move
 * after another, or operations of a move, while the schedule still fails.
 */
export function shrink(built: Built, scenario: Scenario, schedule: Schedule, wrong: string): Schedule {
  const kind = wrong.split(':')[0]
  const simulation = new Simulation(built, scenario)
  const fails = (candidate: Schedule) => {
    simulation.reset()
    return play(simulation, candidate)?.split(':')[0] === kind
  }
  let best = schedule
  for (let improved = true; improved; ) {
    improved = false
    for (const candidate of smaller(best)) {
      if (!fails(candidate)) continue
      best = candidate
      improved = true
      break
    }
  }
  return best
}

/**
 * All schedules that are slightly simpler: without one move, with two moves of a thread joined, or with fewer
 * operations.
 */
function* smaller({ moves }: Schedule): Generator<Schedule> {
  for (let i = 0; i < moves.length; i++) yield new Schedule(moves.toSpliced(i, 1))
  for (let i = 0; i < moves.length; i++) {
    const move = moves[i]!
    if (!('operations' in move)) continue
    const next = moves.findIndex(
      (other, j) => j > i + 1 && 'operations' in other && other.thread === move.thread,
    )
    if (next < 0) continue
    const joined = moves.toSpliced(next, 1)
    joined[i] = { ...move, operations: move.operations + (moves[next] as typeof move).operations }
    yield new Schedule(joined)
  }
  for (let i = 0; i < moves.length; i++) {
    const move = moves[i]!
    if (!('operations' in move)) continue
    for (const operations of [move.operations >> 1, move.operations - 1]) {
      if (operations > 0 && operations < move.operations)
        yield new Schedule(moves.with(i, { ...move, operations }))
    }
  }
}
