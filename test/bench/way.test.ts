// run: full
// What a request calls of this package, as `npm run bench:instructions` prints it.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { inlinedIn, wayOf } from '../../bench/instructions/way.js'

test('the way of an admitted request has the decision and the headers, each compiled, and what no request calls is not on it', async () => {
  const way = await wayOf('node:http', 'Millrace')
  const names = way.map(({ name }) => name)
  for (const name of ['admit', 'check', 'hash', 'conclude', 'write', 'InlineDecision'])
    assert.ok(names.includes(name), `${name} is not among ${names.join(', ')}`)
  for (const name of ['rateLimit', 'createLimiter', 'writeRetryAfter', '#refuse', 'insert', 'find'])
    assert.not(names.includes(name), name)
  assert.equal(
    way.filter(({ bytes }) => bytes === 0),
    [],
  )
})

/** Which of the functions that an admitted request calls stand in others. V8 has a bound for what it inlines. */
test('the decision is inlined into the check of its limiter', async () => {
  const way = await wayOf('node:http', 'Millrace')
  const inlined = way.filter(({ isInlined }) => isInlined).map(({ name }) => name)
  for (const name of ['checkNow', 'decides', '#finish'])
    assert.ok(inlined.includes(name), `${name} is not among ${inlined.join(', ')}`)
})

test('a server without a limiter calls nothing of this package', async () => {
  assert.equal(await wayOf('node:http', 'constant headers'), [])
})

test('the log of inlining is read by the names of both functions', () => {
  const line =
    'Inlining 0x24b8b390 {0x2c2b <SharedFunctionInfo <instance_members_initializer>>} into 0x24b7 {0x2c2 <SharedFunctionInfo get hasHash>}'
  assert.equal(inlinedIn(line), [{ callee: '<instance_members_initializer>', caller: 'get hasHash' }])
  assert.equal(inlinedIn('- candidate: JSCall node #140'), [])
})

test.run()
