// run: once
import { inspect } from 'node:util'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises, assertSame, limiterWith } from './support.js'

const NO_DURATIONS = ['0s', '-1m', '1 hour', 'abc', Number.NaN, 0, -1, null, {}, '', Number.NEGATIVE_INFINITY]

test('block: a time that is not a positive duration is refused, and the key is not blocked', () => {
  const { limiter } = limiterWith()
  for (const ms of [...NO_DURATIONS, undefined, 'Infinity']) {
    const act = () => limiter.block('key', ms as never)
    assertSame(assertRaises(act, 'ERR_MILLRACE_INVALID_DURATION', 'ms', inspect(ms)).value, ms)
  }
  assert.ok(limiter.check('key').allowed)
})

test('usage: a time that is not a positive duration is refused', () => {
  const { limiter } = limiterWith()
  for (const ms of [...NO_DURATIONS, Number.POSITIVE_INFINITY]) {
    const act = () => limiter.usage('key', ms as never)
    assertRaises(act, 'ERR_MILLRACE_INVALID_DURATION', 'lastMs', inspect(ms))
  }
})

test('usage: a time beyond the window is refused, the whole window is accepted', () => {
  const { limiter } = limiterWith()
  limiter.check('key', 2)
  for (const ms of ['5m', '1d', 60_001]) {
    const act = () => limiter.usage('key', ms as never)
    assert.match(assertRaises(act, 'ERR_MILLRACE_INVALID_DURATION', 'lastMs', inspect(ms)).expected, '1m')
  }
  assert.equal([limiter.usage('key', '1m'), limiter.usage('key', 60_000)], [2, 2])
})

test('update: another rule’s name and an invalid limit are refused, and change nothing', () => {
  const { limiter } = limiterWith({ name: 'mine' })
  for (const rule of ['default', '', undefined, null, 5, 'MINE']) {
    const act = () => limiter.update(rule as never, { limit: 9 })
    assert.match(assertRaises(act, 'ERR_MILLRACE_INVALID_RULE', 'rule', inspect(rule)).message, "'mine'")
  }
  for (const limit of [0, -1, 1.5, Number.NaN, '5', 2 ** 22 - 1, undefined]) {
    const act = () => limiter.update('mine', { limit: limit as never })
    assertRaises(act, 'ERR_MILLRACE_INVALID_RULE', 'limit', inspect(limit))
  }
  for (const change of [undefined, null, 5, {}]) {
    assertRaises(() => limiter.update('mine', change as never), 'ERR_MILLRACE_INVALID_RULE', 'limit')
  }
  assert.is(limiter.peek('key').limit, 5)
})

test.run()
