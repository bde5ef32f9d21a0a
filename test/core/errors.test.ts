import { MillraceError } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

test('an error has its code, option, value, expectation and cause', () => {
  const cause = new RangeError('too much')
  const error = new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'maxKeys', 0, 'an integer of 1 or more', {
    cause,
  })
  assert.instance(error, Error)
  const { name, code, option, value, expected, message } = error
  assert.equal(
    [name, code, option, value, expected],
    ['MillraceError', 'ERR_MILLRACE_INVALID_OPTION', 'maxKeys', 0, 'an integer of 1 or more'],
  )
  assert.is(message, 'maxKeys: expected an integer of 1 or more, got 0')
  assert.is(error.cause, cause)
  assert.match(error.stack!, 'errors.test')
})

test('a message shows a value of any type on one short line', () => {
  const shown: [unknown, string][] = [
    [undefined, 'undefined'],
    [null, 'null'],
    [Number.NaN, 'NaN'],
    [-0.5, '-0.5'],
    [5n, '5n'],
    [true, 'true'],
    ['5', '"5"'],
    ['two\nlines', '"two\\nlines"'],
    ['x'.repeat(80), `"${'x'.repeat(80)}"`],
    ['x'.repeat(81), 'a string of 81 characters'],
    [Symbol('key'), 'Symbol(key)'],
    [() => 'secret', 'a function'],
    [{ secret: 1 }, 'an object'],
    [['secret'], 'an array'],
    [Object.create(null), 'an object'],
  ]
  for (const [value, text] of shown) {
    const { message } = new MillraceError('ERR_MILLRACE_INVALID_KEY', 'key', value, 'a string')
    assert.is(message, `key: expected a string, got ${text}`)
  }
})

test.run()
