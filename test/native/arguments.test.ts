// With any arguments `admitMany` decides or throws, and writes only to the arrays of its arguments.
import { test as always } from 'uvu'
import * as assert from 'uvu/assert'
import {
  ADM,
  HASH,
  HEADER,
  HI,
  LIVE,
  MOST_RECORDS,
  NAMES_AT,
  type Shape,
  SUMS,
  shapeFor,
} from '#millrace/memory/layout.js'
import { addonFor } from '#millrace/native/addon.js'
import { COUNTING, PARAM } from '#millrace/native/native-params.js'
import { isLeftOut } from './sides.js'

const test = isLeftOut() ? always.skip : always

const LIMIT = 5

/** An empty arena with the limit of the params. A batch stops if the two limits differ. */
function emptyArena(buffer: ArrayBufferLike): Int32Array {
  const words = new Int32Array(buffer)
  words[HEADER.CURRENT] = LIMIT
  return words
}

/** Valid arguments: two keys that have no way. */
function rightArguments() {
  const { words } = shapeFor(60_000, 60, 2)
  return {
    words: emptyArena(new SharedArrayBuffer(4 * words)) as unknown,
    fingerprints: new Int32Array([1, 2, 3, 4]) as unknown,
    costs: 1 as unknown,
    allowed: new Uint8Array(2) as unknown,
    at: new Float64Array(2) as unknown,
    seen: new Int32Array(8) as unknown,
    // biome-ignore format: one line
    params: new Float64Array([60_000, 0, 60, 2, 0, 0, LIMIT, 0, 2, 1e6, 0, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0]) as unknown,
    remaining: new Int32Array(2) as unknown,
  }
}

const call = (given: ReturnType<typeof rightArguments>): number => {
  const addon = addonFor({ MILLRACE_NATIVE: '1' })!
  const { words, fingerprints, costs, allowed, at, seen, params, remaining } = given
  return (addon.admitMany as (...args: unknown[]) => number)(
    words,
    fingerprints,
    costs,
    allowed,
    at,
    seen,
    params,
    remaining,
  )
}

test('valid arguments are accepted, and a new key is left to TypeScript', () => {
  assert.is(call(rightArguments()), 0)
  const words = emptyArena(new ArrayBuffer(4 * shapeFor(60_000, 60, 2).words)) // an ArrayBuffer is accepted, too
  assert.is(call({ ...rightArguments(), words }), 0)
})

test('a value of another type throws a TypeError for each argument', () => {
  const wrong = [
    undefined,
    null,
    'text',
    Symbol('s'),
    {},
    [],
    () => 1,
    1n,
    new SharedArrayBuffer(65_536),
    new ArrayBuffer(65_536),
    new DataView(new ArrayBuffer(65_536)),
    new Uint32Array(65_536),
    new BigInt64Array(65_536),
    new Uint8ClampedArray(65_536),
    new Float32Array(65_536),
    new Proxy(new Int32Array(65_536), {}),
  ]
  for (const name of [
    'words',
    'fingerprints',
    'costs',
    'allowed',
    'at',
    'seen',
    'params',
    'remaining',
  ] as const) {
    for (const value of wrong) {
      if (name === 'remaining' && value === undefined) continue // not asked for
      assert.throws(() => call({ ...rightArguments(), [name]: value }), isError(TypeError, name))
    }
    if (name !== 'costs')
      assert.throws(() => call({ ...rightArguments(), [name]: 7 }), isError(TypeError, name))
  }
  const { admitMany } = addonFor({ MILLRACE_NATIVE: '1' })!
  assert.throws(() => (admitMany as () => number)(), TypeError)
})

test('an array that is too short, empty or detached throws a RangeError', () => {
  const { words } = shapeFor(60_000, 60, 2)
  const detached = new Float64Array(2)
  structuredClone(detached, { transfer: [detached.buffer] })
  for (const [name, value] of [
    ['words', new Int32Array(words - 1)],
    ['words', new Int32Array(0)],
    ['fingerprints', new Int32Array(3)],
    ['costs', new Float64Array(1)],
    ['costs', detached],
    ['allowed', new Uint8Array(1)],
    ['at', new Float64Array(1)],
    ['at', detached],
    ['seen', new Int32Array(7)],
    ['params', new Float64Array(9)],
    ['remaining', new Int32Array(1)],
  ] as const) {
    assert.throws(() => call({ ...rightArguments(), [name]: value }), isError(RangeError, ''), name)
  }
})

test('a param out of range throws a RangeError', () => {
  const wrong: [field: number, values: number[]][] = [
    [PARAM.WINDOW_MS, [0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 1e300]],
    [PARAM.ORIGIN_MS, [Number.NaN, Number.NEGATIVE_INFINITY, 1e300]],
    [PARAM.BUCKETS, [0, -1, 1.5, 61, 257, 2 ** 20, 2 ** 20 + 1, 2 ** 32, Number.NaN]],
    [PARAM.SETS, [0, 1, -2, 2.5, 3, 2 ** 28, 2 ** 33, Number.NaN]],
    [PARAM.SUMS, [-1, 0.5, 1, 2, 3, 2 ** 32, Number.NaN]], // 1 and 2 need more words
    [PARAM.LIMIT, [0, -1, 1.5, 2 ** 22 - 1, Number.NaN]],
    [PARAM.FROM, [-1, 0.5, 3, Number.NaN]],
    [PARAM.TO, [-1, 1.5, 3, 2 ** 53, Number.NaN]],
    [PARAM.NOW_MS, [Number.NaN, Number.POSITIVE_INFINITY, 1e300, -1e300]],
    [PARAM.RECORD, [-1, 0.5, MOST_RECORDS, 2 ** 32, Number.NaN]],
    [PARAM.SHIFT, [-1, 0.5, 2 ** 32, Number.NaN]],
    [PARAM.COUNTING, [-1, 0.5, 2, 3, 4, 2 ** 32, Number.NaN]],
    [PARAM.UNITS, [-1, 0.5, 2 ** 18 + 1, Number.NaN]],
    [PARAM.SUSPECT_FROM, [-1, 0.5, 2 ** 22 + 1, Number.NaN]],
    [PARAM.OFFSET_MS, [Number.NaN, Number.POSITIVE_INFINITY, 1e300]],
    [PARAM.CELL_BUCKETS, [0, -1, 59, 59.5, 61, 2 ** 20, 2 ** 20 + 1, 2 ** 32, Number.NaN]],
  ]
  for (const [field, values] of wrong) {
    for (const value of values) {
      const given = rightArguments()
      ;(given.params as Float64Array)[field] = value
      assert.throws(() => call(given), isError(RangeError, ''), `field ${field}: ${value}`)
    }
  }
})

test('a cost that is not an integer of 0 or more throws a RangeError', () => {
  for (const cost of [-1, 0.5, Number.NaN, Number.NEGATIVE_INFINITY]) {
    for (const costs of [cost, new Float64Array([7, cost])]) {
      const given = { ...rightArguments(), costs, remaining: undefined }
      assert.throws(() => call(given), isError(RangeError, 'costs'), String(cost))
    }
  }
})

for (const sums of SUMS) {
  test(`${sums}: on memory of random words it stops or decides, and writes to no memory beside the arena`, () => {
    writesOnlyToTheArena(shapeFor(60_000, 60, 2, sums), COUNTING.BUCKETS)
  })
}
for (const [algorithm, counting] of [
  ['fixed-window', COUNTING.FIXED_WINDOW],
  ['token-bucket', COUNTING.TOKEN_BUCKET],
  ['sliding-log', COUNTING.LOG],
] as const) {
  test(`${algorithm}: on memory of random words it stops or decides, and writes to no memory beside the arena`, () => {
    writesOnlyToTheArena(shapeFor(60_000, 60, 2, 'linear', { algorithm, units: 60, offsetMs: 0 }), counting)
  })
}

function writesOnlyToTheArena({ words, waysAt, wayWords, sums, units }: Shape, counting: number): void {
  const beside = 1_024
  let decided = 0
  for (let round = 0; round < 2_000; round++) {
    const all = new Int32Array(words + 2 * beside)
    const arena = all.subarray(beside, beside + words)
    crypto.getRandomValues(arena)
    arena[HEADER.CURRENT] = LIMIT
    const given = rightArguments()
    const params = given.params as Float64Array
    params[PARAM.SUMS] = SUMS.indexOf(sums)
    params[PARAM.COUNTING] = counting
    params[PARAM.UNITS] = units
    const keys = [3, 20].map((way) => {
      arena[waysAt + way * wayWords + ADM]! |= LIVE
      arena[waysAt + way * wayWords + HI]! &= HASH // the first record
      arena[NAMES_AT + way]! = (arena[NAMES_AT + way]! & 0x7fffffff) | (way < 16 ? 0 : 1 << 31) // in this way's set
      return [arena[NAMES_AT + way]!, arena[waysAt + way * wayWords + HI]!]
    })
    given.words = arena
    given.fingerprints = Int32Array.from(keys.flat())
    given.remaining = round % 3 === 0 ? undefined : new Int32Array(2)
    given.costs = round % 2 === 0 ? 0 : 1 + (round % 5)
    decided += call(given)
    assert.ok(all.subarray(0, beside).every((word) => word === 0))
    assert.ok(all.subarray(beside + words).every((word) => word === 0))
  }
  assert.ok(decided > 2_000, `only ${decided} were decided`)
}

function isError(kind: ErrorConstructor, word: string): (error: Error) => boolean {
  return (error) => error instanceof kind && error.message.includes(word)
}

always.run()
