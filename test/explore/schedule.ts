import type { Built } from './copy.js'
import { MOST_AT_ONCE } from './machine.js'
import type { Scenario } from './scenario.js'
import { Stage } from './stage.js'

/** Who does what next: a thread so many operations on memory, a thread its last, or the clock its next. */
export type Move = { thread: number; operations: number } | { thread: number; dies: true } | { clock: true }

/**
 * A schedule, as it is printed and read: `0*12 clock 1*3 0+ 1*5` is thread 0 doing twelve operations, the clock moving on,
 * thread 1 doing three, thread 0 dying, thread 1 doing five more. What is left undone at its end is done by one thread
 * after the other.
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

  /** @throws Error where `text` is no schedule */
  static parse(text: string): Schedule {
    const moves = text
      .trim()
      .split(/\s+/)
      .filter((word) => word !== '')
      .map((word): Move => {
        if (word === 'clock') return { clock: true }
        const [, thread, operations] = /^(\d+)(?:\*(\d+)|\+)$/.exec(word) ?? []
        if (thread === undefined) throw new Error(`no move of a schedule: ${word}`)
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

  /** How often another goes on than before: what makes a schedule hard to read. */
  get length(): number {
    return this.moves.length
  }
}

/** Plays a schedule, and what it left undone; what went wrong, if anything did. */
export function replay(built: Built, scenario: Scenario, schedule: Schedule): string | undefined {
  return play(new Stage(built, scenario), schedule)
}

/** Plays a schedule and prints every operation of it: who, which word, what stood there, what stands there now. */
export function explain(
  built: Built,
  scenario: Scenario,
  schedule: Schedule,
  print: (line: string) => void,
): void {
  const stage = new Stage(built, scenario)
  stage.machine.trace = (thread, index, before, after) => {
    const change = before === after ? '' : ` -> ${stage.describe(index, after)}`
    print(`thread ${thread}  ${stage.nameOf(index)}: ${stage.describe(index, before)}${change}`)
  }
  print(play(stage, schedule, print) ?? 'nothing went wrong')
}

/** @see replay; on a stage that is at its start */
export function play(
  stage: Stage,
  schedule: Schedule,
  print: (line: string) => void = () => {},
): string | undefined {
  const { ledger } = stage
  for (const move of schedule.moves) {
    if (!('operations' in move)) print('clock' in move ? 'the clock moves' : `thread ${move.thread} dies`)
    if ('clock' in move) {
      if (stage.clockCanMove) stage.moveClock()
    } else if ('dies' in move) {
      if (stage.canRun(move.thread) && ledger.dead === 0) ledger.dies(move.thread)
    } else if (stage.canRun(move.thread)) {
      stage.run(move.thread, Number.POSITIVE_INFINITY, move.operations)
      if (stage.machine.done === MOST_AT_ONCE) return `hang: thread ${move.thread}`
    }
    if (ledger.wrong !== undefined) return ledger.wrong
  }
  for (let thread = 0; thread < stage.players.length; thread++) {
    if (stage.canRun(thread)) stage.run(thread, Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER)
    if (ledger.wrong !== undefined) return ledger.wrong
    if (stage.canRun(thread)) return `hang: thread ${thread}`
  }
  stage.judgeAtRest()
  return ledger.wrong
}

/**
 * A shorter schedule that goes wrong in the same way (by the first words of what went wrong): leaves out one move after
 * another, and operations of one, as long as it still does.
 */
export function shrink(built: Built, scenario: Scenario, schedule: Schedule, wrong: string): Schedule {
  const kind = wrong.split(':')[0]
  const stage = new Stage(built, scenario)
  const fails = (candidate: Schedule) => {
    stage.reset()
    return play(stage, candidate)?.split(':')[0] === kind
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

/** Every schedule that is a little simpler: with a move less, two of one thread joined, or fewer operations in a move. */
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
