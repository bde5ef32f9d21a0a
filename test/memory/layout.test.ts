import { attachLimiter, createLimiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { FLAGS } from '#millrace/core/rule-options.js'
import * as layout from '#millrace/memory/layout.js'

/** The index and the range of each word. Versions of this package that agree on them may share one arena. */
const VERSION_7 = {
  MAGIC: 0x6d696c6c,
  HEADER: {
    MAGIC: 0,
    VERSION: 1,
    BUCKETS: 2,
    SETS: 3,
    RECORDS_USED: 4,
    ORIGIN_MS: 6,
    SEED_0: 8,
    SEED_1: 9,
    ON_FULL: 11,
    CURRENT: 12,
    RANGE_SUM: 13,
    UPDATES: 14,
    FOLLOWING: 15,
    NEWEST: 16,
    PERIOD: 18,
    TIME_ZONE: 20,
    ALLOWED: 32,
    DENIED: 34,
    EVICTED: 36,
    EVICTED_LIVE: 38,
    NO_ROOM: 40,
    CLAIMING: 42,
    BLOCKS_EVICTED: 44,
    KEYS: 46,
    CLOCK_OFFSET_MS: 48,
    WALL_AHEAD_MS: 50,
    BOOT_ID: 52,
    MAX_KEYS: 56,
    RULE_DIGEST: 64,
    RULE_NAME_BYTES: 72,
    RULE_NAME: 80,
    SHADOW_DENIED: 112,
    FLAGS: 114,
    UNIT: 116,
    UP_AHEAD_MS: 118,
    DAMAGED: 120,
  },
  HEADER_WORDS: 128,
  TIME_ZONE_WORDS: 12,
  RULE_DIGEST_WORDS: 8,
  RULE_NAME_WORDS: 32,
  EDGES: ['strict', 'smooth'],
  ON_FULL: ['evict', 'deny', 'allow'],
  SUMS: ['linear', 'blocks', 'fenwick'],
  WAYS_PER_SET: 16,
  HI: 0,
  ADM: 1,
  TICK: 2,
  AS_OF: 3,
  UNTIL: 4,
  BUCKETS: 5,
  COUNT: 0x3fffff,
  BLOCKED: 0x3fffff,
  MAX_TOTAL: 0x3ffffe,
  STATE: 0xc00000,
  FREE: 0,
  CLAIMED: 0x400000,
  NAMED: 0x800000,
  LIVE: 0xc00000,
  EPOCH: 0xff000000 | 0,
  ONE_EPOCH: 0x1000000,
  NOTED: 0x800000,
  TIME: 0x7fffff,
  NO_NOTE: 0,
  LAP: 0xff000000 | 0,
  LAPS: 256,
  ONE_LAP: 0x1000000,
  NODE_COUNT: 0xffffff,
  BLOCK_BITS: 6,
  BLOCK: 64,
  REFUNDS: 0xc00000,
  ONE_REFUND: 0x400000,
  SUNK: 3,
  GENERATION: 0,
  GIVING: 1,
  PAST: 0,
  PAST_UNTIL: 1,
  CARRIED: 2,
  CARRIED_TICK: 3,
  PAST_WORDS: 4,
  ONE_TURN: 1 << 16,
  EXTRA_WORDS: 2,
  PER_SECOND: 16,
  FOR_EVER: 0xffffffff,
  RECORDS_AT: 128,
  RECORD: {
    WINDOW_MS: 0,
    BUCKETS: 2,
    SHIFT: 3,
    EDGE: 4,
    ALGORITHM: 5,
    UNITS: 6,
    ALIGN: 7,
    OFFSET_MS: 8,
    RATE_LIMIT: 10,
    RATE_BURST: 11,
    BEGUN: 12,
    PERIOD: 13,
  },
  RECORD_WORDS: 16,
  MOST_RECORDS: 64,
  CURRENT_RECORD_SHIFT: 24,
  CURRENT_LIMIT: 0xffffff,
  HASH: ~0x7f,
  CONVERTING: 0x40,
  CELL_RECORD: 0x3f,
  ALGORITHMS: [
    'sliding-window',
    'sliding-counter',
    'fixed-window',
    'token-bucket',
    'leaky-bucket',
    'sliding-log',
  ],
  ALIGNS: ['none', 'clock', 'first', 'calendar'],
  PERIODS: ['none', 'day', 'week', 'month', 'year'],
  NAMES_AT: 1_152,
  MOST_BLOCKS: 64,
  MOST_BLOCKED: 16,
  MIN_SETS: 2,
  LAP_SHIFT: 24,
}

// An algorithm or an alignment that follows the others needs no new version: a library that does not know it refuses its records.
test('the map of an arena of version 8 has not changed: a change needs a new version', () => {
  const { LAYOUT_VERSION, setsFor, isBuckets, isWindow, shapeFor, sumsFor, refundsOf, ...map } = layout
  assert.is(LAYOUT_VERSION, 8)
  assert.equal({ ...map }, VERSION_7)
  assert.equal(FLAGS, [
    ['countRefused', 1],
    ['shadow', 2],
  ])
})

test('the refunds of a bucket lie between its lap and its count', () => {
  for (const lap of [0, 1, 127, 128, 255]) {
    for (const refunds of [0, 1, 2, 3]) {
      for (const count of [0, 1, 0x3fffff]) {
        assert.is(layout.refundsOf((lap << 24) | (refunds * layout.ONE_REFUND) | count), refunds)
      }
    }
  }
})

test('a record must have 1 to 2^20 buckets, that of a log more, and a window of a millisecond or more', () => {
  assert.is(layout.isWindow('sliding-log', 2 ** 26, 1), true)
  assert.is(layout.isWindow('sliding-log', 2 ** 27, 1), false)
  for (const [buckets, windowMs] of [
    [1, 1],
    [2 ** 20, 1],
    [60, 1e12],
  ] as const) {
    assert.is(layout.isWindow('sliding-window', buckets, windowMs), true)
  }
  for (const [buckets, windowMs] of [
    [0, 1],
    [2 ** 20 + 1, 1],
    [1, 0.5],
    [1, Number.POSITIVE_INFINITY],
  ] as const) {
    assert.is(layout.isWindow('sliding-window', buckets, windowMs), false)
  }
})

test('a thread can attach to the arena with the fewest keys and the shortest window', () => {
  const clock = manualClock(1_000)
  const limiter = createLimiter({ limit: 2, window: 1, granularity: 1, maxKeys: 1, onFull: 'deny', clock })
  const attached = attachLimiter(limiter.share())
  for (let i = 0; i < 32; i++) assert.ok(attached.check(`key ${i}`).allowed, 'two sets of 16')
  assert.not(limiter.check('one more').allowed)
  assert.is(limiter.check('key 0').remaining, 0)
})

test('an arena has ways for its keys at a load of 80 %, and memory for all words of a way', () => {
  for (const [maxKeys, sets] of [
    [1, 2],
    [25, 2],
    [26, 3],
    [12_800, 1_000],
    [12_801, 1_001],
  ] as const) {
    assert.is(layout.setsFor(maxKeys), sets, `${maxKeys} keys`)
  }
  assert.equal(layout.shapeFor(60_000, 60, 1_000), {
    windowMs: 60_000,
    buckets: 60,
    record: 0,
    shift: 0,
    cellBuckets: 60,
    leastBuckets: 1,
    mostBuckets: 60,
    sums: 'linear',
    ring: 61,
    blocks: 0,
    upper: 0,
    modulus: 275_036 * 256 * 61,
    sets: 1_000,
    ways: 16_000,
    wayWords: 66,
    offsetMs: 0,
    units: 0,
    waysAt: 17_152,
    extraAt: 17_152 + 16_000 * 66,
    extraWords: 2,
    pastAt: 17_152 + 16_000 * 68,
    words: 17_152 + 16_000 * 72,
  })
})

test('nodes follow a ring that is a span longer than the window: a block, or 64 blocks with two levels', () => {
  for (const [buckets, sums, ring, blocks, upper] of [
    [257, 'blocks', 384, 6, 0],
    [257, 'fenwick', 384, 6, 0],
    [4_096, 'blocks', 4_224, 66, 0],
    [4_097, 'blocks', 12_288, 192, 3],
    [86_400, 'blocks', 94_208, 1_472, 23],
    [86_400, 'fenwick', 86_528, 1_352, 0],
  ] as const) {
    const shape = layout.shapeFor(1_000, buckets, 2, sums)
    assert.equal([shape.ring, shape.blocks, shape.upper], [ring, blocks, upper], `${buckets} by ${sums}`)
    assert.is(shape.wayWords, layout.BUCKETS + ring + blocks + upper)
    assert.is(shape.modulus % (layout.LAPS * ring), 0)
  }
  const chosen = (asked?: 'fenwick') =>
    [1, 256, 257, 2 ** 20].map((buckets) => layout.sumsFor(buckets, asked))
  assert.equal(chosen(), ['linear', 'linear', 'blocks', 'fenwick'])
  assert.equal(chosen('fenwick'), ['linear', 'linear', 'fenwick', 'fenwick'])
})

test.run()
