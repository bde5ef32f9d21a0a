// `serveRequests` refuses wrong arguments, and writes only to the ring and the arena.
import { test as always } from 'uvu'
import * as assert from 'uvu/assert'
import { HEADER, shapeFor } from '#millrace/memory/layout.js'
import { OP, Op, REQUESTS_AT, SLOT_WORDS, SLOTS, SLOTS_AT } from '#millrace/memory/request-ring.js'
import { addonFor } from '#millrace/native/addon.js'
import { PARAM } from '#millrace/native/native-params.js'
import { random } from '../algorithms/random.js'
import { RequestCalls } from './fuzz/requests.js'
import { Values } from './fuzz/values.js'
import { isLeftOut } from './sides.js'

const test = isLeftOut() ? always.skip : always
const RING_WORDS = SLOTS_AT + SLOTS * SLOT_WORDS

function rightArguments() {
  const words = new Int32Array(new SharedArrayBuffer(4 * shapeFor(60_000, 60, 2).words))
  words[HEADER.CURRENT] = 5
  return {
    words: words as unknown,
    ring: new Int32Array(new SharedArrayBuffer(4 * RING_WORDS)) as unknown,
    // biome-ignore format: one line
    params: new Float64Array([60_000, 0, 60, 2, 0, 0, 5, 0, 2, 1e6, 0, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0]) as unknown,
  }
}

const call = ({ words, ring, params }: ReturnType<typeof rightArguments>): unknown =>
  (addonFor({ MILLRACE_NATIVE: '1' })!.serveRequests as (...args: unknown[]) => unknown)(words, ring, params)

test('a request other than CHECK and a new key are left to TypeScript', () => {
  const given = rightArguments()
  assert.is(call(given), 0)
  ;(given.ring as Int32Array)[REQUESTS_AT + OP] = Op.CHECK
  assert.is(call(given), 0)
})

test('a value of another type throws a TypeError, and an array that is too short a RangeError', () => {
  for (const name of ['words', 'ring', 'params'] as const) {
    for (const value of [
      undefined,
      null,
      7,
      'text',
      {},
      new SharedArrayBuffer(99_999),
      new Int8Array(99_999),
    ]) {
      assert.throws(
        () => call({ ...rightArguments(), [name]: value }),
        (e: Error) => e instanceof TypeError,
      )
    }
  }
  for (const [name, value] of [
    ['words', new Int32Array(100)],
    ['ring', new Int32Array(RING_WORDS - 1)],
    ['ring', new Int32Array(new SharedArrayBuffer(4 * RING_WORDS + 4), 4)],
    ['params', new Float64Array(11)],
  ] as const) {
    assert.throws(
      () => call({ ...rightArguments(), [name]: value }),
      (e: Error) => e instanceof RangeError,
    )
  }
})

test('cursors that are not integers or too far apart throw a RangeError, and cursors may wrap at 2^31', () => {
  for (const [from, to] of [
    [0.5, 2],
    [Number.NaN, 2],
    [0, 2 ** 31],
    [-(2 ** 31) - 1, 0],
    [2, 0],
    [0, SLOTS + 1],
  ] as const) {
    const given = rightArguments()
    ;(given.params as Float64Array).set([from, to], PARAM.FROM)
    assert.throws(
      () => call(given),
      (e: Error) => e instanceof RangeError,
      `${from}, ${to}`,
    )
  }
  const given = rightArguments()
  ;(given.params as Float64Array).set([2 ** 31 - 1, -(2 ** 31) + 5], PARAM.FROM)
  assert.is(call(given), 2 ** 31 - 1)
})

test('on random rings and random memory it serves or stops, and writes to no memory beside them', () => {
  const calls = new RequestCalls(
    addonFor({ MILLRACE_NATIVE: '1' })!,
    new Values(random(7)),
    new SharedArrayBuffer(4 * 36_864),
  )
  for (let i = 0; i < 5_000; i++) assert.is(calls.call(), undefined)
  assert.ok(calls.served > 1_000, `only ${calls.served} were served`)
})

always.run()
