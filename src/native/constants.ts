/**
 * Every number that TypeScript and C++ share. TypeScript defines it; `npm run generate` writes it to
 * `native/constants.h`. The addon exports the hash of the constants that it was compiled with, and the loader
 * compares it with `constantsHash()`.
 */
import { createHash } from 'node:crypto'
import { PLACE_SHIFT, REFUNDS_SHIFT } from '../algorithms/log/log-entries.js'
import * as log from '../algorithms/log/log-entry.js'
import { LOG_STEP_BITS } from '../algorithms/log/sliding-log.js'
import { STEP_BITS } from '../algorithms/window/sliding-window.js'
import { MAX_AHEAD_MS, MAX_AHEAD_TICKS, MIN_AHEAD_TICKS, MOST_NEWEST } from '../algorithms/word/cell-time.js'
import * as meter from '../algorithms/word/meter.js'
import { M_BITS, MOST_BUCKETS_TAKEN } from '../algorithms/word/token-bucket.js'
import { MOST_WORD_BUCKETS, WORD_MODULUS, WORDS_BEFORE_ENTRIES } from '../core/cell-size.js'
import { MAX_BUCKETS } from '../core/granularity.js'
import { Outcome } from '../core/inline-decision.js'
import { MOST_RULES } from '../core/rule.js'
import { MOST_IN_LOG, MOST_LOG_TICKS, MOST_UNITS } from '../core/rule-algorithms.js'
import { SIXTEENTHS, TICK_END_MARGIN } from '../core/ticks.js'
import { MOST_TRIES } from '../core/tries.js'
import * as layout from '../memory/layout.js'
import * as requestRing from '../memory/request-ring.js'
import { NO_BLOCK } from '../range-sum/nodes.js'
import { CHARGED, LATE, OVERFLOWN, SWEEP_LAPS } from '../range-sum/range-sum.js'
import {
  CALL,
  CALL_WORDS,
  COUNTING,
  KEYS_PER_READING,
  NO_WAY,
  OPERATION,
  PARAM,
  PARAM_COUNT,
  SEEN_WORDS,
  STATUS,
} from './native-params.js'

type Numbers = Readonly<Record<string, number>>

/** By their C++ types. `Word` is `uint32_t`: a negative number stands for its two's complement. */
export const CONSTANTS: Readonly<Record<'Word' | 'int64_t' | 'double', Numbers>> = {
  Word: {
    LAYOUT_VERSION: layout.LAYOUT_VERSION,
    HEADER_CURRENT: layout.HEADER.CURRENT,
    CURRENT_RECORD_SHIFT: layout.CURRENT_RECORD_SHIFT,
    CURRENT_LIMIT: layout.CURRENT_LIMIT,
    MOST_RECORDS: layout.MOST_RECORDS,
    HASH: layout.HASH,
    CELL_RECORD: layout.CELL_RECORD,
    HEADER_NEWEST: layout.HEADER.NEWEST,
    NAMES_AT: layout.NAMES_AT,
    MAX_BUCKETS,
    MOST_TRIES,
    SUMS_LINEAR: layout.SUMS.indexOf('linear'),
    SUMS_BLOCKS: layout.SUMS.indexOf('blocks'),
    SUMS_FENWICK: layout.SUMS.indexOf('fenwick'),
    WAYS_PER_SET: layout.WAYS_PER_SET,
    MIN_SETS: layout.MIN_SETS,
    HI: layout.HI,
    ADM: layout.ADM,
    TICK: layout.TICK,
    AS_OF: layout.AS_OF,
    UNTIL: layout.UNTIL,
    BUCKETS: layout.BUCKETS,
    COUNT: layout.COUNT,
    BLOCKED: layout.BLOCKED,
    MAX_TOTAL: layout.MAX_TOTAL,
    STATE: layout.STATE,
    LIVE: layout.LIVE,
    EPOCH: layout.EPOCH,
    ONE_EPOCH: layout.ONE_EPOCH,
    NOTED: layout.NOTED,
    TIME: layout.TIME,
    NO_NOTE: layout.NO_NOTE,
    LAP: layout.LAP,
    LAPS: layout.LAPS,
    ONE_LAP: layout.ONE_LAP,
    REFUNDS: layout.REFUNDS,
    ONE_REFUND: layout.ONE_REFUND,
    SUNK: layout.SUNK,
    GENERATION: layout.GENERATION,
    GIVING: layout.GIVING,
    ONE_TURN: layout.ONE_TURN,
    EXTRA_WORDS: layout.EXTRA_WORDS,
    PAST_WORDS: layout.PAST_WORDS,
    NODE_COUNT: layout.NODE_COUNT,
    BLOCK_BITS: layout.BLOCK_BITS,
    BLOCK: layout.BLOCK,
    MOST_BLOCKS: layout.MOST_BLOCKS,
    PER_SECOND: layout.PER_SECOND,
    FOR_EVER: layout.FOR_EVER,
    LATE,
    OVERFLOWN,
    CHARGED,
    NO_BLOCK,
    SWEEP_LAPS,
    STEP_BITS,
    MOST_NEWEST,
    SIXTEENTHS,
    ...prefixed('PARAM', { ...PARAM, COUNT: PARAM_COUNT }),
    ...prefixed('CALL', { ...CALL, WORDS: CALL_WORDS }),
    ...prefixed('OPERATION', OPERATION),
    ...prefixed('STATUS', STATUS),
    SEEN_WORDS,
    KEYS_PER_READING,
    MOST_RULES,
    ...prefixed('COUNTING', COUNTING),
    SHUT: meter.SHUT,
    METER: meter.METER,
    M_BITS,
    MOST_BUCKETS_TAKEN,
    MOST_UNITS,
    WORD_MODULUS,
    MOST_WORD_BUCKETS,
    MOST_LOG_TICKS,
    MOST_IN_LOG,
    WORDS_BEFORE_ENTRIES,
    LOG_STEP_BITS,
    RECEIPT_PLACE_SHIFT: PLACE_SHIFT,
    RECEIPT_REFUNDS_SHIFT: REFUNDS_SHIFT,
    ENTRY_VERSIONS: log.VERSIONS,
    ENTRY_COUNTS: log.COUNTS,
    ENTRY_TICK_SHIFT: log.TICK_SHIFT,
    ENTRY_TICKS: log.ENTRY_TICKS,
    MOST_AHEAD: log.MOST_AHEAD,
    SWEEP_TICKS: log.SWEEP_TICKS,
    RING_REPLIED: requestRing.REPLIED,
    RING_ACCEPTED: requestRing.ACCEPTED,
    RING_COMPLETED: requestRing.COMPLETED,
    REQUESTS_AT: requestRing.REQUESTS_AT,
    REQUEST_BITS: requestRing.REQUEST_BITS,
    REQUEST_OP: requestRing.OP,
    REQUEST_LO: requestRing.LO,
    REQUEST_HI: requestRing.HI,
    REQUEST_COST: requestRing.COST,
    OP_CHECK: requestRing.Op.CHECK,
    SLOTS: requestRing.SLOTS,
    SLOTS_AT: requestRing.SLOTS_AT,
    SLOT_WORDS: requestRing.SLOT_WORDS,
    SLOT_WAY: requestRing.WAY,
    SLOT_CHARGED_TICK: requestRing.CHARGED_TICK,
    SLOT_REFUNDS: requestRing.REFUNDS,
    SLOT_LIMIT: requestRing.LIMIT,
    SLOT_REMAINING: requestRing.REMAINING,
    SLOT_OUTCOME: requestRing.OUTCOME,
    SLOT_NUMBER: requestRing.NUMBER,
    SLOT_RETRY_AFTER_MS: requestRing.RETRY_AFTER_MS,
    SLOT_RESET_MS: requestRing.RESET_MS,
    OUTCOME_CHARGED: Outcome.CHARGED,
  },
  int64_t: { NO_WAY },
  double: {
    MAX_SAFE_INTEGER: Number.MAX_SAFE_INTEGER,
    TICK_END_MARGIN,
    MAX_AHEAD_MS,
    MIN_AHEAD_TICKS,
    MAX_AHEAD_TICKS,
    PERIOD_MS: log.PERIOD_MS,
  },
}

function prefixed(prefix: string, numbers: Numbers): Numbers {
  return Object.fromEntries(Object.entries(numbers).map(([name, value]) => [`${prefix}_${name}`, value]))
}

/**
 * Changes whenever a constant gets another name, type or value, or moves in the list. 16 hexadecimal digits.
 */
export function constantsHash(): string {
  return createHash('sha256').update(JSON.stringify(CONSTANTS)).digest('hex').slice(0, 16)
}
