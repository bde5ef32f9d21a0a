import type { Arena } from '#millrace/memory/records.js'
import { logJudges } from './log-judges.js'
import type { Known } from './memory-judge.js'
import type { ExploredAlgorithm, Scenario } from './scenario.js'
import { slidingWindowJudges } from './sliding-window-judges.js'
import { wordJudges } from './word-judges.js'

/** What a write to a word of a cell has charged, or has taken out. */
export interface WrittenCharge {
  /** The tick place at which it counts. */
  readonly place: number
  /** Units that count more than before; below 0: less. */
  readonly more: number
  /** Whether the write also says that a refund by key has taken units. */
  readonly isMarked: boolean
}

/** What the explorer asks of an algorithm. The ledger knows only the words that all cells begin with. */
export interface AlgorithmJudges {
  /** The tick in a word of TICK, as a word. */
  tickOf(word: number): number
  /**
   * The charge in a write to a field of a cell, whose tick word is `newest`. Undefined if the write charges
   * nothing that counts.
   */
  chargeIn(field: number, before: number, after: number, newest: number): WrittenCharge | undefined
  /** Units have been admitted at this place, by this limit: judges every window that they are in. */
  admitted(key: number, place: number, limit: number): void
  /** The key's cell, of this record and with this tick, changes to another record at this moment. */
  converts(key: number, record: number, tick: number, ms: number): void
  /** The key loses its cell at this moment. What counts by one of these records still counts. */
  losesCell(key: number, records: readonly number[], ms: number): void
  /** The units that the memory of a cell may count at this tick of a record, at most. */
  usedAtMost(key: number, record: number, tick: number): number
  /** The way has become LIVE. */
  becomesLive(way: number): void
  /** Judges the memory when no thread is inside an operation. */
  judgeAtRest(): void
}

const JUDGES: Readonly<
  Record<ExploredAlgorithm, (scenario: Scenario, arena: Arena, known: Known) => AlgorithmJudges>
> = {
  'sliding-window': slidingWindowJudges,
  'sliding-counter': slidingWindowJudges,
  'sliding-log': logJudges,
  'fixed-window': wordJudges,
  'token-bucket': wordJudges,
}

/** The judges of an arena's algorithm. */
export const judgesOf = (scenario: Scenario, arena: Arena, known: Known): AlgorithmJudges =>
  JUDGES[scenario.algorithm ?? 'sliding-window'](scenario, arena, known)
