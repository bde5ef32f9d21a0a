// run: once, also-long
import { inspect } from 'node:util'
import { attachLimiter, MillraceError, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { HEADER, NAMES_AT, RECORD, RECORDS_AT } from '#millrace/memory/layout.js'
import fc from '../fast-check.js'
import { assertRaises, limiterWith } from './support.js'

/** A share with a copy of the memory, which the test may damage. */
function copyOfShare() {
  const share = limiterWith().limiter.share()
  const buffer = new SharedArrayBuffer(share.buffer.byteLength)
  new Int32Array(buffer).set(new Int32Array(share.buffer))
  return { share: { ...share, buffer }, words: new Int32Array(buffer), doubles: new Float64Array(buffer) }
}

test('a value that is not a share is refused', () => {
  for (const shared of [undefined, null, 5, 'share', () => {}]) {
    assertRaises(
      () => attachLimiter(shared as never),
      'ERR_MILLRACE_INVALID_SHARE',
      'shared',
      inspect(shared),
    )
  }
  assertRaises(() => attachLimiter({} as never), 'ERR_MILLRACE_INVALID_SHARE', 'shared.buffer')
})

test('memory that is not an arena is refused: unshared, small, empty, foreign', () => {
  const { share } = copyOfShare()
  const foreign = new SharedArrayBuffer(share.buffer.byteLength)
  new Uint8Array(foreign).fill(0x55)
  const unshared = new ArrayBuffer(share.buffer.byteLength)
  const sizes = [0, 1, 3, 4, 255, 4 * NAMES_AT, 1 << 16].map((bytes) => new SharedArrayBuffer(bytes))
  for (const buffer of [null, undefined, {}, 5, unshared, new Uint8Array(8), foreign, ...sizes]) {
    const act = () => attachLimiter({ ...share, buffer: buffer as never })
    assertRaises(act, 'ERR_MILLRACE_INVALID_SHARE', 'shared.buffer', inspect(buffer))
  }
})

test('a truncated arena is refused with the number of bytes that it should have', () => {
  const { share } = copyOfShare()
  const { byteLength } = share.buffer
  for (const bytes of [4 * NAMES_AT, byteLength / 2, byteLength - 4]) {
    const cut = new SharedArrayBuffer(bytes)
    new Int32Array(cut).set(new Int32Array(share.buffer, 0, bytes / 4))
    const act = () => attachLimiter({ ...share, buffer: cut })
    const { message } = assertRaises(act, 'ERR_MILLRACE_INVALID_SHARE', 'shared.buffer')
    assert.match(message, `${byteLength} bytes`)
  }
})

const TAMPERED: Record<string, number[]> = {
  MAGIC: [0, 1, -1],
  VERSION: [0, 1, 7, 9, -1],
  BUCKETS: [0, -1, 61, 2 ** 20 + 1, 2 ** 31 - 1],
  SETS: [0, 1, -2, 3, 2 ** 31 - 1],
  RANGE_SUM: [-1, 3],
  RECORDS_USED: [0, -1],
  CURRENT: [0, -1, (1 << 24) | 5, 2 ** 22 - 1],
  ON_FULL: [-1, 3],
  FLAGS: [-1, 4],
}
for (const [name, values] of Object.entries(TAMPERED)) {
  test(`an arena with a damaged ${name} is refused`, () => {
    for (const value of values) {
      const { share, words } = copyOfShare()
      words[HEADER[name as keyof typeof HEADER]] = value
      assertRaises(() => attachLimiter(share), 'ERR_MILLRACE_INVALID_SHARE', 'shared.buffer', `${value}`)
    }
  })
}

test('an arena with an impossible window or origin is refused', () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, 0, -60_000]) {
    const { share, doubles } = copyOfShare()
    doubles[(RECORDS_AT + RECORD.WINDOW_MS) / 2] = value
    assertRaises(() => attachLimiter(share), 'ERR_MILLRACE_INVALID_SHARE', 'shared.buffer', `window ${value}`)
  }
  for (const value of [Number.NaN, Number.NEGATIVE_INFINITY]) {
    const { share, doubles } = copyOfShare()
    doubles[HEADER.ORIGIN_MS / 2] = value
    assertRaises(() => attachLimiter(share), 'ERR_MILLRACE_INVALID_SHARE', 'shared.buffer', `origin ${value}`)
  }
})

test('an arena with a damaged record is refused', () => {
  for (const [name, values] of Object.entries({
    BUCKETS: [0, 59, 61],
    EDGE: [-1, 2],
    ALGORITHM: [-1, 3, 99],
    UNITS: [-1, 1],
    ALIGN: [-1, 3, 4],
    PERIOD: [-1, 1, 5],
    RATE_BURST: [-1, 1],
  })) {
    for (const value of values) {
      const { share, words } = copyOfShare()
      words[RECORDS_AT + RECORD[name as keyof typeof RECORD]] = value
      assertRaises(
        () => attachLimiter(share),
        'ERR_MILLRACE_INVALID_SHARE',
        'shared.buffer',
        `${name} ${value}`,
      )
    }
  }
})

test('an arena with a damaged calendar is refused', () => {
  const calendar = {
    algorithm: 'fixed-window',
    align: 'calendar',
    period: 'day',
    timeZone: 'Asia/Tokyo',
  } as const
  const { limiter } = limiterWith({ ...calendar, window: undefined } as never)
  const share = limiter.share()
  const words = new Int32Array(share.buffer)
  assert.is(attachLimiter(share).rule.timeZone, 'Asia/Tokyo')
  for (const [at, value] of [
    [RECORDS_AT + RECORD.PERIOD, 0],
    [RECORDS_AT + RECORD.PERIOD, 5],
    [RECORDS_AT + RECORD.ALIGN, 1],
    [HEADER.TIME_ZONE, 0],
    [HEADER.TIME_ZONE, 0x41414141],
    [HEADER.TIME_ZONE + 1, -1],
  ] as const) {
    const before = words[at]!
    words[at] = value
    assertRaises(() => attachLimiter(share), 'ERR_MILLRACE_INVALID_SHARE', 'shared.buffer', `${at} ${value}`)
    words[at] = before
  }
})

test('an arena with an impossible unit is refused', () => {
  for (const high of [-1, 2 ** 21, 2 ** 31 - 1, -(2 ** 31)]) {
    const { share, words } = copyOfShare()
    words[HEADER.UNIT + 1] = high
    assertRaises(() => attachLimiter(share), 'ERR_MILLRACE_INVALID_SHARE', 'shared.buffer', `unit ${high}`)
  }
})

test('with any values in the first 16 words of an arena, attaching works or is refused by name', () => {
  const word = fc.record({
    at: fc.integer({ min: 0, max: 15 }),
    value: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
  })
  const isRefused = { yes: 0, no: 0 }
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 2 }), (changes) => {
      const { share, words } = copyOfShare()
      for (const { at, value } of changes) words[at] = value
      try {
        attachLimiter(share)
        isRefused.no++
      } catch (error) {
        assert.instance(error, MillraceError, `${error}`)
        assert.is((error as MillraceError).code, 'ERR_MILLRACE_INVALID_SHARE')
        isRefused.yes++
      }
    }),
    { numRuns: 300 },
  )
  assert.ok(isRefused.yes > 50 && isRefused.no > 5, `both outcomes occurred: ${inspect(isRefused)}`)
})

test('a share without its rule’s name, or without a clock, is refused', () => {
  const { share } = copyOfShare()
  for (const rule of [undefined, null, 5, {}]) {
    const act = () => attachLimiter({ ...share, rule: rule as never })
    assertRaises(act, 'ERR_MILLRACE_INVALID_SHARE', 'shared.rule', inspect(rule))
  }
  const clocks = [undefined, null, 'own', 'system', {}, new ArrayBuffer(16), new SharedArrayBuffer(8)]
  for (const clock of clocks) {
    const act = () => attachLimiter({ ...share, clock: clock as never })
    assertRaises(act, 'ERR_MILLRACE_INVALID_SHARE', 'shared.clock', inspect(clock))
  }
})

test('attachLimiter: options that are not an object are refused', () => {
  const { share } = copyOfShare()
  for (const options of [null, 5, 'clock']) {
    const act = () => attachLimiter(share, options as never)
    assertRaises(act, 'ERR_MILLRACE_INVALID_OPTION', 'options', inspect(options))
  }
})

test('a share is structured-cloneable, and the attached limiter has the same keys, counts, limit and clock', () => {
  const { clock, limiter } = limiterWith({ name: 'ours', limit: 3 })
  limiter.check('key')
  const attached = attachLimiter(structuredClone(limiter.share()))
  assert.is(attached.check('key').remaining, 1)
  assert.is(limiter.usage('key'), 2)
  assert.is(attached.check('key').rule, 'ours')
  limiter.update('ours', { limit: 9 })
  assert.is(attached.peek('key').limit, 9)
  clock.advance(61_000)
  assert.is(attached.usage('key'), 0)
  attached.check('key')
  assert.is(attachLimiter(attached.share()).usage('key'), 1, 'an attached limiter can be shared again')
})

test('handles and packed keys of another limiter are refused, even of one on the same memory', async () => {
  const { limiter } = limiterWith()
  for (const other of [limiterWith().limiter, attachLimiter(limiter.share())]) {
    const foreign = other.handle('key')
    const foreignCode = 'ERR_MILLRACE_FOREIGN_HANDLE'
    for (const act of [
      () => limiter.check(foreign),
      () => limiter.peek(foreign),
      () => limiter.usage(foreign),
      () => limiter.refund(foreign, 1),
      () => limiter.penalize(foreign, 1),
      () => limiter.block(foreign, 1),
      () => limiter.unblock(foreign),
      () => limiter.clear(foreign),
    ]) {
      assertRaises(act, foreignCode, 'key', `${act}`)
    }
    assertRaises(() => limiter.pack(['a', foreign]), foreignCode, 'keys[1]')
    assertRaises(() => limiter.checkMany(['a', foreign]), foreignCode, 'keys[1]')
    assertRaises(() => limiter.checkMany(other.pack(['a'])), foreignCode, 'keys')
  }
  assert.is(limiter.stats().keys, 0)
})

test('decisions of another limiter, and objects that look like decisions, are refused', () => {
  const { limiter } = limiterWith()
  limiter.check('key')
  for (const other of [limiterWith().limiter, attachLimiter(limiter.share())]) {
    const decision = other.check('key')
    assertRaises(() => limiter.refund(decision), 'ERR_MILLRACE_FOREIGN_DECISION', 'decision')
    assert.is(other.refund(decision), 1, 'its own limiter accepts it')
  }
  for (const looksLikeOne of [limiter.check('key').toJSON(), {}, null]) {
    assert.throws(
      () => limiter.refund(looksLikeOne as never),
      (error: unknown) => error instanceof MillraceError,
      inspect(looksLikeOne),
    )
  }
  assert.is(limiter.usage('key'), 2)
})

test('a limiter accepts another limiter’s manual clock as a custom clock', () => {
  const { limiter } = limiterWith()
  const clock = manualClock(99)
  assert.not.throws(() => attachLimiter(limiter.share(), { clock }))
})

test.run()
