import { Outcome } from '../core/decision.js'
import { MAX_BUCKETS } from '../core/rule.js'
import * as layout from '../memory/layout.js'
import * as slots from '../memory/request-ring.js'
import { CALL, FOUND, PLAN, WHAT } from './plan.js'

const { HEADER } = layout

/** What the addon must say of the map of an arena (`native/layout.h` has the same names) and of its own arguments. */
const EXPECTED: Readonly<Record<string, number>> = {
  LAYOUT_VERSION: layout.LAYOUT_VERSION,
  HEADER_LIMIT: HEADER.LIMIT,
  HEADER_RANGE_SUM: HEADER.RANGE_SUM,
  HEADER_NEWEST: HEADER.NEWEST,
  HEADER_WORDS: layout.HEADER_WORDS,
  NAMES_AT: layout.NAMES_AT,
  MAX_BUCKETS,
  SUMS_PLAIN: layout.SUMS.indexOf('linear'),
  SUMS_BLOCKS: layout.SUMS.indexOf('blocks'),
  SUMS_FENWICK: layout.SUMS.indexOf('fenwick'),
  WAYS_PER_SET: layout.WAYS_PER_SET,
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
  REFUNDS: layout.REFUNDS,
  ONE_REFUND: layout.ONE_REFUND,
  SUNK: layout.SUNK,
  GENERATION: layout.GENERATION,
  GIVING: layout.GIVING,
  ONE_TURN: layout.ONE_TURN,
  BESIDE_WORDS: layout.BESIDE_WORDS,
  NODE_COUNT: layout.NODE_COUNT,
  BLOCK_BITS: layout.BLOCK_BITS,
  MOST_BLOCKS: layout.MOST_BLOCKS,
  PER_SECOND: layout.PER_SECOND,
  FOR_EVER: layout.FOR_EVER,
  REQUESTS_AT: slots.REQUESTS_AT,
  REQUEST_BITS: slots.REQUEST_BITS,
  SLOTS_AT: slots.SLOTS_AT,
  SLOTS: slots.SLOTS,
  SLOT_WORDS: slots.SLOT_WORDS,
  ...prefixed('SLOT', {
    ANSWERED: slots.ANSWERED,
    BEGUN: slots.BEGUN,
    DONE: slots.DONE,
    OP: slots.OP,
    LO: slots.LO,
    HI: slots.HI,
    COST: slots.COST,
    WAY: slots.WAY,
    CHARGED_TICK: slots.CHARGED_TICK,
    REFUNDS: slots.REFUNDS,
    LIMIT: slots.LIMIT,
    REMAINING: slots.REMAINING,
    OUTCOME: slots.OUTCOME,
    RETRY_AFTER_MS: slots.RETRY_AFTER_MS,
    RESET_MS: slots.RESET_MS,
    OP_CHECK: slots.Op.CHECK,
    OUTCOME_CHARGED: Outcome.CHARGED,
  }),
  ...prefixed('PLAN', PLAN),
  ...prefixed('CALL', CALL),
  ...prefixed('WHAT', WHAT),
  ...prefixed('FOUND', FOUND),
}

function prefixed(prefix: string, names: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(names).map(([name, value]) => [`${prefix}_${name}`, value]))
}

/** Where an addon's map differs from ours, in words; undefined where it is the same. */
export function differenceOf(theirs: unknown): string | undefined {
  if (typeof theirs !== 'object' || theirs === null) return 'it says nothing of its layout'
  const found = theirs as Record<string, unknown>
  for (const name of new Set([...Object.keys(EXPECTED), ...Object.keys(found)])) {
    const expected = EXPECTED[name]
    // Words are exported as signed integers, whichever way they are written here.
    if (expected === undefined || found[name] !== (expected | 0)) {
      return `${name} is ${found[name]} there and ${expected} here`
    }
  }
  return undefined
}
