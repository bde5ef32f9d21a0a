// run: once
// Keys and costs that no method accepts. Rules are in bad-rule, clocks in bad-clock, shared objects in
// bad-share.
import { inspect } from 'node:util'
import type { Limiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises, assertRejects, assertSame, limiterWith } from './support.js'

const MAX_KEY_LENGTH = 65_536

const NO_COSTS = [-1, 1.5, Number.NaN, '1', Number.POSITIVE_INFINITY, null, 1n, {}, [1], true]
const TAKES_COST: Record<string, (limiter: Limiter, cost: never) => unknown> = {
  check: (limiter, cost) => limiter.check('key', cost),
  'check by handle': (limiter, cost) => limiter.check(limiter.handle('key'), cost),
  peek: (limiter, cost) => limiter.peek('key', cost),
  penalize: (limiter, cost) => limiter.penalize('key', cost),
  refund: (limiter, cost) => limiter.refund('key', cost),
}
for (const [name, act] of Object.entries(TAKES_COST)) {
  test(`${name}: a cost that is not an integer of 0 or more is refused, and nothing is charged`, () => {
    const { limiter } = limiterWith()
    for (const cost of NO_COSTS) {
      const raise = () => act(limiter, cost as never)
      const error = assertRaises(raise, 'ERR_MILLRACE_INVALID_COST', 'cost', inspect(cost))
      assertSame(error.value, cost)
    }
    assert.is(limiter.usage('key'), 0)
    assert.is(limiter.stats().keys, 0)
  })
}

test('penalize and refund by key need a cost', () => {
  const { limiter } = limiterWith()
  assertRaises(() => limiter.penalize('key', undefined as never), 'ERR_MILLRACE_INVALID_COST', 'cost')
  assertRaises(() => limiter.refund('key', undefined as never), 'ERR_MILLRACE_INVALID_COST', 'cost')
})

test('wait: a cost that is not an integer of 0 or more is a rejection', async () => {
  const { limiter } = limiterWith()
  for (const cost of NO_COSTS) {
    await assertRejects(
      () => limiter.wait('key', { cost: cost as never }),
      'ERR_MILLRACE_INVALID_COST',
      'cost',
    )
  }
  assert.is(limiter.stats().keys, 0)
})

test('checkMany: a bad cost is refused by its name or its index, and nothing is charged', () => {
  const { limiter } = limiterWith()
  for (const cost of [-1, 1.5, Number.NaN, '1', Number.POSITIVE_INFINITY, null, true]) {
    assertRaises(() => limiter.checkMany(['a', 'b'], cost as never), 'ERR_MILLRACE_INVALID_COST', 'costs')
    const act = () => limiter.checkMany(['a', 'b', 'c'], [1, 2, cost as never])
    assertRaises(act, 'ERR_MILLRACE_INVALID_COST', 'costs[2]', inspect(cost))
  }
  assertRaises(() => limiter.checkMany(['a', 'b'], [1]), 'ERR_MILLRACE_INVALID_COST', 'costs')
  assertRaises(() => limiter.checkMany(['a'], new Uint8Array(2)), 'ERR_MILLRACE_INVALID_COST', 'costs')
  assertRaises(() => limiter.checkMany([], {} as never), 'ERR_MILLRACE_INVALID_COST', 'costs')
  assert.is(limiter.stats().keys, 0)
})

const NO_KEYS = [undefined, null, 5, '', {}, [], ['key'], new String('key'), Symbol('key'), 1n, true]
const TAKES_KEY: Record<string, (limiter: Limiter, key: never) => unknown> = {
  check: (limiter, key) => limiter.check(key),
  peek: (limiter, key) => limiter.peek(key),
  usage: (limiter, key) => limiter.usage(key),
  refund: (limiter, key) => limiter.refund(key, 1),
  penalize: (limiter, key) => limiter.penalize(key, 1),
  block: (limiter, key) => limiter.block(key, '1m'),
  unblock: (limiter, key) => limiter.unblock(key),
  clear: (limiter, key) => limiter.clear(key),
  handle: (limiter, key) => limiter.handle(key),
}
for (const [name, act] of Object.entries(TAKES_KEY)) {
  test(`${name}: a key that is neither a string of 1 to 65,536 characters nor a handle is refused`, () => {
    const { limiter } = limiterWith()
    for (const key of [...NO_KEYS, 'x'.repeat(MAX_KEY_LENGTH + 1)]) {
      const hint = typeof key === 'string' ? `${key.length} characters` : inspect(key)
      assertRaises(() => act(limiter, key as never), 'ERR_MILLRACE_INVALID_KEY', 'key', hint)
    }
    assert.is(limiter.stats().keys, 0)
    assert.not.throws(() => act(limiter, 'x'.repeat(MAX_KEY_LENGTH) as never))
  })
}

test('wait: a bad key is a rejection', async () => {
  const { limiter } = limiterWith()
  for (const key of NO_KEYS) {
    await assertRejects(() => limiter.wait(key as never), 'ERR_MILLRACE_INVALID_KEY', 'key')
  }
})

test('pack and checkMany: a bad key is refused by its index, a value that is not an array by its name', () => {
  const { limiter } = limiterWith()
  for (const act of [(keys: never) => limiter.pack(keys), (keys: never) => limiter.checkMany(keys)]) {
    for (const key of [...NO_KEYS, 'x'.repeat(MAX_KEY_LENGTH + 1)]) {
      const raise = () => act(['fine', 'fine too', key] as never)
      assertRaises(raise, 'ERR_MILLRACE_INVALID_KEY', 'keys[2]')
    }
    assertRaises(() => act(new Array(3) as never), 'ERR_MILLRACE_INVALID_KEY', 'keys[0]')
    for (const keys of [undefined, null, 'keys', {}, new Set(['key']), new Int32Array(2)]) {
      assertRaises(() => act(keys as never), 'ERR_MILLRACE_INVALID_KEY', 'keys', inspect(keys))
    }
  }
  assert.is(limiter.stats().keys, 0)
})

test('checkMany checks every key and cost before it charges the first key', () => {
  const { limiter } = limiterWith()
  assert.throws(() => limiter.checkMany(['a', 'b', '']))
  assert.throws(() => limiter.checkMany(['a', 'b', 'c'], [1, 1, -1]))
  assert.throws(() => limiter.checkMany(['a', 'b', limiterWith().limiter.handle('c')]))
  assert.is(limiter.usage('a'), 0)
  const { keys, allowed, denied } = limiter.stats()
  assert.equal([keys, allowed, denied], [0, 0, 0])
})

test('an index outside the batch is refused', () => {
  const { limiter } = limiterWith()
  const batch = limiter.checkMany(['a', 'b'])
  for (const i of [-1, 2, 0.5, Number.NaN, '0', undefined]) {
    assertRaises(() => batch.retryAfterMs(i as never), 'ERR_MILLRACE_INVALID_OPTION', 'i', inspect(i))
  }
})

test('options that are not an object are refused', async () => {
  const { limiter } = limiterWith()
  for (const options of [null, 5, 'remaining']) {
    const act = () => limiter.checkMany(['key'], 1, options as never)
    assertRaises(act, 'ERR_MILLRACE_INVALID_OPTION', 'options', inspect(options))
    await assertRejects(() => limiter.wait('key', options as never), 'ERR_MILLRACE_INVALID_OPTION', 'options')
  }
  assert.is(limiter.usage('key'), 0)
})

test('wait: a signal that is not an AbortSignal is a rejection', async () => {
  const { limiter } = limiterWith()
  for (const signal of [null, 5, {}, new AbortController()]) {
    const act = () => limiter.wait('key', { signal: signal as never })
    await assertRejects(act, 'ERR_MILLRACE_INVALID_OPTION', 'signal')
  }
  assert.is(limiter.usage('key'), 0)
})

test('keys of any script are distinct keys, also lone surrogates', () => {
  const { limiter } = limiterWith({ limit: 1 })
  const keys = ['ключ', '鍵', 'מפתח', 'clé', 'cle\u0301', '🔑', '\ud83d', '\udd11', '\0', ' ', '\u{10ffff}']
  for (const key of keys) assert.ok(limiter.check(key).allowed, inspect(key))
  for (const key of keys) assert.not(limiter.check(key).allowed, inspect(key))
})

test('keys of 65,536 characters that differ only in the last one are different keys', () => {
  const { limiter } = limiterWith({ limit: 1 })
  const long = 'x'.repeat(MAX_KEY_LENGTH - 1)
  assert.ok(limiter.check(`${long}a`).allowed)
  assert.ok(limiter.check(`${long}b`).allowed)
  assert.not(limiter.check(`${long}a`).allowed)
})

test.run()
