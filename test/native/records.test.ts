// The addon leaves cells of other records to TypeScript, and stops when another record holds. It computes the
// ticks of a record as TypeScript does.
import { test as always } from 'uvu'
import * as assert from 'uvu/assert'
import { Reading } from '#millrace/core/reading.js'
import { checkRule } from '#millrace/core/rule.js'
import { Ticks } from '#millrace/core/ticks.js'
import { InlineEngine } from '#millrace/engines/inline/inline.js'
import { createArena } from '#millrace/memory/arena.js'
import {
  ADM,
  CONVERTING,
  HEADER,
  HI,
  LIVE,
  NAMES_AT,
  type Shape,
  shapeFor,
  TICK,
} from '#millrace/memory/layout.js'
import { type Arena, arenaBy, changeRecord, currentWord, recordIn } from '#millrace/memory/records.js'
import { CHARGED_TICK, SLOT_WORDS, SLOTS_AT } from '#millrace/memory/request-ring.js'
import { load } from '#millrace/memory/words.js'
import { PARAM, SEEN_WORDS } from '#millrace/native/native-params.js'
import { random } from '../algorithms/random.js'
import {
  CALLS,
  type CalledKey,
  chargedTick,
  paramsOf,
  RING_WORDS,
  retryAfter,
  runBatch,
  runRequests,
} from './calls.js'
import { isLeftOut } from './sides.js'

const test = isLeftOut() ? always.skip : always
const START_MS = 1_000_123
const LIMIT = 9
const [lo, hi] = [0x1234, 0x5600]

/** An arena whose window has been changed twice, and a key with a cell of its first record. */
function changed() {
  const rule = checkRule({ limit: LIMIT, window: '1m', granularity: '1s' })
  const first = createArena(rule, 20, 'evict', START_MS)
  const engine = new InlineEngine(first, 'default', { now: () => START_MS })
  engine.checkNow(lo, hi, 2)
  for (const buckets of [30, 40]) {
    changeRecord(first, { windowMs: 1_000 * buckets, buckets, units: 0 }, undefined, START_MS)
  }
  const { way } = engine
  const present = arenaBy(first, recordIn(load(first.words, HEADER.CURRENT))) ?? first
  return { first, present, engine, key: { lo, hi, way }, base: baseOf(first, way) }
}

const baseOf = ({ shape }: { readonly shape: Shape }, way: number): number =>
  shape.waysAt + way * shape.wayWords

/** Whether the addon answers. If it does not, it must not change the memory. */
function answers(name: string, arena: Arena, key: CalledKey): boolean {
  const before = arena.words.slice()
  const isAnswered = CALLS[name]!(arena, key, LIMIT, START_MS)
  if (!isAnswered)
    assert.ok(
      before.every((word, i) => word === arena.words[i]),
      `${name} changes a word`,
    )
  return isAnswered
}

for (const name of Object.keys(CALLS)) {
  test(`${name}: a cell of another record is left to TypeScript, which converts it`, () => {
    const { present, engine, key, base } = changed()
    const { words } = present
    assert.is(present.shape.record, 2)
    assert.not(answers(name, present, key), 'a cell of the first record')
    for (const low of [1, 3, 63, CONVERTING | 1, CONVERTING | 2]) {
      words[base + HI] = hi | low
      assert.not(answers(name, present, key), `HI: ${low}`)
      assert.not(answers(name, present, { ...key, hi: hi | low }), `HI and the fingerprint: ${low}`)
    }
    words[base + HI] = hi
    assert.is(engine.usage(lo, hi, 40_000), 2)
    assert.ok(answers(name, present, key), 'converted')
  })

  test(`${name}: nothing is decided by a record that is not the present one`, () => {
    const { first, present, key, base } = changed()
    for (const record of [0, 1]) {
      first.words[base + HI] = hi | record
      assert.not(answers(name, arenaBy(first, record)!, key), `record ${record}`)
    }
    first.words[base + HI] = hi | 2
    assert.ok(answers(name, present, key))
    first.words[HEADER.CURRENT] = currentWord(0, LIMIT)
    assert.not(answers(name, present, key))
  })

  test(`${name}: a key without a cell is left to TypeScript by a later record`, () => {
    const { present, key } = changed()
    assert.not(answers(name, present, { ...key, hi: hi + 0x80 }))
  })
}

test('the time until a refused cost fits is left to TypeScript if the cell has changed its record', () => {
  const { present, engine, key, base } = changed()
  engine.checkNow(lo, hi, 7)
  assert.ok(retryAfter(present, key, LIMIT, START_MS))
  for (const low of [0, 1, 3, CONVERTING | 2]) {
    present.words[base + HI] = hi | low
    assert.not(retryAfter(present, key, LIMIT, START_MS), `HI: ${low}`)
  }
})

/** The present record's arena, with another shift, so that its tick at START_MS is that word. */
function ticking(tick: number) {
  const { present, engine, key } = changed()
  const { shape, words } = present
  engine.usage(lo, hi, 40_000) // converts the key's cell
  const unshifted = Math.floor(START_MS / (shape.windowMs / shape.buckets))
  const base = baseOf(present, key.way)
  words[base + TICK] = tick
  words[base + ADM] = LIVE
  return { arena: { ...present, shape: { ...shape, shift: tick - unshifted } }, key }
}

const SAME = currentWord(2, LIMIT)
const PRESENTS = [SAME, currentWord(2, LIMIT - 1), currentWord(3, LIMIT)]

// What the addon writes about the last key that it should decide overlaps CURRENT, so CURRENT becomes that
// key's tick. This changes the rule between two keys without a second thread.

test('a batch stops at the first key after a change of the record or the limit', () => {
  for (const present of PRESENTS) {
    const { arena, key } = ticking(present)
    const { words } = arena
    const count = LIMIT + 5
    const params = paramsOf(arena, LIMIT, START_MS, count)
    // The refusal of key `LIMIT` is the first that is written to `seen`: way, admission word, tick, UNTIL.
    const all = new Int32Array(new SharedArrayBuffer(4 * (SEEN_WORDS * count + words.length)))
    const shared = all.subarray(SEEN_WORDS * LIMIT + 2 - HEADER.CURRENT)
    shared.set(words)
    const stopped = runBatch(shared, params, key, 1, all.subarray(0, SEEN_WORDS * count))
    assert.is(shared[HEADER.CURRENT], present)
    assert.is(stopped, present === SAME ? count : LIMIT + 1)
    assert.is(params[PARAM.ADMITTED], LIMIT)
  }
})

test('the request server stops at the first request after a change of the record', () => {
  for (const present of [SAME, currentWord(3, LIMIT)]) {
    const { arena, key } = ticking(present)
    const { words } = arena
    const all = new Int32Array(new SharedArrayBuffer(4 * (RING_WORDS + words.length)))
    const shared = all.subarray(SLOTS_AT + 2 * SLOT_WORDS + CHARGED_TICK - HEADER.CURRENT)
    shared.set(words)
    const served = runRequests(shared, paramsOf(arena, LIMIT, START_MS, 5), key, all.subarray(0, RING_WORDS))
    assert.is(shared[HEADER.CURRENT], present)
    assert.is(served, present === SAME ? 5 : 3)
  }
})

test('the ticks of shifted records are those of TypeScript, also where they wrap', () => {
  const next = random(5)
  const below = (count: number) => Math.floor(next() * count)
  const of = <T>(values: readonly T[]): T => values[below(values.length)]!
  let wrapped = 0
  for (let i = 0; i < 3_000; i++) {
    const cellBuckets = of([1, 7, 10, 60, 256])
    const buckets = 1 + below(cellBuckets)
    const windowMs = of([buckets, 1_000 * buckets, (1_000 * buckets) / 3, 1 + 1e6 * next()])
    const cells = shapeFor(windowMs, cellBuckets, 2)
    const { modulus } = cells
    const record = below(64)
    const shift = of([0, below(modulus), modulus - 1, 2 ** 32 - 1])
    const shape = { ...cells, buckets, record, shift }
    // A time some ticks before or after the wrap, or any other.
    const near = Math.max(0, modulus * (1 + below(2)) - shift + below(9) - 4)
    const nowMs = of([((near + next()) * windowMs) / buckets, 1e12 * next(), -1e9 * next()])
    const reading = new Reading({ now: () => nowMs }, new Ticks(windowMs, buckets, modulus, shift))
    reading.take()
    if (reading.tick >>> 0 < 5) wrapped++
    const words = new Int32Array(new SharedArrayBuffer(4 * shape.words))
    const way = 3
    const base = baseOf({ shape }, way)
    words[HEADER.CURRENT] = currentWord(record, LIMIT)
    words[NAMES_AT + way] = lo
    words[base + HI] = hi | record
    words[base + ADM] = LIVE
    words[base + TICK] = reading.tick
    const arena = { words, shape, originMs: 0, edge: 'strict', algorithm: 'sliding-window' } as Arena
    const described = JSON.stringify({ windowMs, buckets, cellBuckets, shift, nowMs })
    assert.is(chargedTick(arena, { lo, hi, way }, LIMIT, nowMs), reading.tick, described)
    assert.equal([words[base + TICK], words[base + ADM]], [reading.tick, LIVE + 1], described)
  }
  assert.ok(wrapped > 200, `only ${wrapped} readings are just after a wrap`)
})

always.run()
