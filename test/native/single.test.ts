// `single` refuses wrong arguments, and its function keeps its memory alive.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createLimiter, manualClock } from 'millrace'
import { test as always } from 'uvu'
import * as assert from 'uvu/assert'
import { MOST_RULES } from '#millrace/core/rule.js'
import { shapeFor } from '#millrace/memory/layout.js'
import { addonFor } from '#millrace/native/addon.js'
import { CALL_WORDS, PARAM } from '#millrace/native/native-params.js'
import { isLeftOut, onSide, type Side } from './sides.js'

const test = isLeftOut() ? always.skip : always
const WORDS = shapeFor(60_000, 60, 2).words
const onShared = (words: number) => new Int32Array(new SharedArrayBuffer(4 * words))
const rightParams = () =>
  new Float64Array([60_000, 0, 60, 2, 0, 0, 5, 0, 2, 1e6, 0, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0])
const make = (...args: unknown[]) =>
  (addonFor({ MILLRACE_NATIVE: '1' })!.single as (...a: unknown[]) => unknown)(...args)

test('it takes an arena, params and a call, and its function returns undefined', () => {
  const run = make(onShared(WORDS), rightParams(), onShared(CALL_WORDS)) as () => unknown
  assert.is(run(), undefined)
})

test('memory that can be transferred away throws a TypeError', () => {
  assert.throws(
    () => make(new Int32Array(WORDS), rightParams(), onShared(CALL_WORDS)),
    /words: .*SharedArrayBuffer/,
  )
  assert.throws(
    () => make(onShared(WORDS), rightParams(), new Int32Array(CALL_WORDS)),
    /call: .*SharedArrayBuffer/,
  )
  for (const wrong of [undefined, null, 1, {}, new SharedArrayBuffer(65_536), new Uint32Array(65_536), [1]]) {
    assert.throws(() => make(wrong, rightParams(), onShared(CALL_WORDS)), TypeError)
    assert.throws(() => make(onShared(WORDS), wrong, onShared(CALL_WORDS)), TypeError)
    assert.throws(() => make(onShared(WORDS), rightParams(), wrong), TypeError)
  }
})

test('an array that is too short or not aligned, and a param out of range, throw a RangeError', () => {
  const throwsRange = (words: unknown, params: unknown, call: unknown, what: string) =>
    assert.throws(
      () => make(words, params, call),
      (error: Error) => error instanceof RangeError && error.message.includes(what),
    )
  throwsRange(onShared(WORDS - 1), rightParams(), onShared(CALL_WORDS), 'words')
  throwsRange(onShared(WORDS), new Float64Array(9), onShared(CALL_WORDS), 'params')
  throwsRange(onShared(WORDS), rightParams(), onShared(CALL_WORDS - 1), 'call')
  throwsRange(onShared(WORDS), rightParams(), onShared(CALL_WORDS + 1).subarray(1), 'call')
  for (const [field, value] of [
    [PARAM.WINDOW_MS, 0],
    [PARAM.ORIGIN_MS, Number.NaN],
    [PARAM.BUCKETS, 61],
    [PARAM.RECORD, 64],
    [PARAM.SHIFT, 2 ** 32],
    [PARAM.CELL_BUCKETS, 61],
    [PARAM.SETS, 3],
    [PARAM.SUMS, 3],
  ] as const) {
    const params = rightParams()
    params[field] = value
    throwsRange(
      onShared(WORDS),
      params,
      onShared(CALL_WORDS),
      field === PARAM.SETS || field === PARAM.CELL_BUCKETS ? 'words' : 'params',
    )
  }
})

test('its properties that hold the arrays cannot be changed or deleted', () => {
  const words = onShared(WORDS)
  const run = make(words, rightParams(), onShared(CALL_WORDS)) as { words?: unknown; call?: unknown }
  assert.is(run.words, words)
  assert.not(Reflect.deleteProperty(run, 'words'))
  assert.not(Reflect.set(run, 'call', undefined))
  assert.not(Reflect.defineProperty(run, 'call', { value: undefined }))
})

test('an unreachable limiter is collected with its memory', async () => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const gone = new Set<number>()
  const registry = new FinalizationRegistry<number>((i) => gone.add(i))
  for (let i = 0; i < 50; i++) {
    const limiter = onSide('addon', () => createLimiter({ limit: 1, window: '1m', maxKeys: 1_000 }))
    assert.ok(limiter.check('key').allowed)
    registry.register(limiter.share().buffer as object, i)
  }
  for (let turn = 0; turn < 20 && gone.size < 49; turn++) {
    collect()
    await nextTurn()
  }
  assert.ok(gone.size >= 49, `${gone.size} of 50 are gone`)
})

test('keys that the addon leaves to TypeScript are decided there, with as many readings of the clock as without it', () => {
  const played = (side: Side) => {
    const clock = { readings: 0, now: () => 1e6 + clock.readings++ }
    const limiter = onSide(side, () => createLimiter({ limit: 2, window: '1m', maxKeys: 20, clock }))
    // A new key, a known key, a key at its limit, and costs that are never charged.
    return [1, 1, 1, 0, 3, 2 ** 40].map((cost) => [limiter.check('key', cost).allowed, clock.readings])
  }
  const decided = played('addon')
  assert.equal(
    decided.map(([allowed]) => allowed),
    [true, true, false, true, false, false],
  )
  assert.equal(decided, played('typescript'))
})

test('a decision of the addon can be refunded, and a changed limit applies at once', () => {
  const limiter = onSide('addon', () =>
    createLimiter({ limit: 2, window: '1m', maxKeys: 20, clock: manualClock(1e6) }),
  )
  const handle = limiter.handle('key')
  limiter.check(handle)
  const second = limiter.check(handle)
  assert.not(limiter.check(handle).allowed)
  assert.is(limiter.refund(second), 1)
  assert.is(limiter.refund(second), 0)
  assert.is(limiter.usage(handle), 1)
  limiter.update('default', { limit: 1 })
  const refused = limiter.check(handle)
  assert.equal([refused.allowed, refused.limit, refused.retryAfterMs], [false, 1, 61_000 - (1e6 % 1_000)])
})

const makeSeries = (...args: unknown[]) =>
  (addonFor({ MILLRACE_NATIVE: '1' })!.series as (...a: unknown[]) => unknown)(...args)

test('a series takes as many arenas as params, on shared memory, and holds them', () => {
  const calls = onShared(2 * CALL_WORDS)
  const arenas = [onShared(WORDS), onShared(WORDS)]
  const params = [rightParams(), rightParams()]
  const run = makeSeries(arenas, params, calls) as (() => unknown) & Record<string, unknown>
  assert.is(run(), undefined)
  assert.equal([run.words0 === arenas[0], run.words1 === arenas[1], run.calls === calls], [true, true, true])
  for (const wrong of [undefined, 1, {}, onShared(WORDS)]) {
    assert.throws(() => makeSeries(wrong, params, calls), TypeError)
    assert.throws(() => makeSeries(arenas, wrong, calls), TypeError)
  }
  assert.throws(() => makeSeries([onShared(WORDS), 1], params, calls), TypeError)
  assert.throws(() => makeSeries([new Int32Array(WORDS), arenas[1]], params, calls), TypeError)
  assert.throws(() => makeSeries([], [], calls), RangeError)
  assert.throws(() => makeSeries(arenas, params.slice(1), calls), RangeError)
  assert.throws(() => makeSeries(arenas, params, onShared(2 * CALL_WORDS - 1)), RangeError)
  const most = Array.from({ length: MOST_RULES + 1 }, () => onShared(WORDS))
  assert.throws(() => makeSeries(most, most.map(rightParams), onShared(20 * CALL_WORDS)), RangeError)
})

test('a series decides several rules as TypeScript does, also where it leaves some to TypeScript', () => {
  const played = (side: Side) => {
    const clock = manualClock(1e6)
    const rules = [
      { name: 'burst', limit: 3, window: '1s' },
      { name: 'minute', limit: 5, window: '1m' },
      { name: 'watched', limit: 4, window: '1h', shadow: true },
    ] as const
    const limiter = onSide(side, () => createLimiter({ rules, maxKeys: 20, clock }))
    // New keys, known ones, a refusal by each rule, costs that are never charged, and a clock that moves.
    const calls = Array.from({ length: 60 }, (_, i) => {
      clock.advance(i % 7 === 0 ? 700 : 0)
      const decision = limiter.check(`key ${i % 3}`, [1, 1, 2, 0, 1, 6][i % 6]!)
      return { ...decision.toJSON(), allowed: decision.allowed }
    })
    return [calls, limiter.stats().allowed, limiter.stats().denied, limiter.stats().shadowDenied]
  }
  assert.equal(played('addon'), played('typescript'))
})

test('a clock that no rule can use charges none of them', () => {
  let nowMs = 1e6
  const rules = [
    { name: 'day', limit: 9, window: '1d' },
    { name: 'fine', limit: 9, window: 1, granularity: 1 / 64 },
  ]
  const limiter = onSide('addon', () => createLimiter({ rules, maxKeys: 20, clock: { now: () => nowMs } }))
  assert.ok(limiter.check('key').allowed)
  nowMs = 2 ** 50 // too coarse for 64ths of a millisecond
  assert.throws(() => limiter.check('key'), /clock/)
  nowMs = 1e6
  assert.is(limiter.usage('key', undefined, { rule: 'day' }), 1)
})

always.run()
