// run: also-long, modules

import { createLimiter, type Decision, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { HttpRequest } from '#millrace/http/framework.js'
import { Answers } from '#millrace/http/problem.js'
import fc from '../fast-check.js'
import { assertRaises, START_MS } from '../limiter/support.js'

const TYPES = 'https://iana.org/assignments/http-problem-types'
const JSON_TYPE = 'application/problem+json'

const requestWith = (accept?: string): HttpRequest => ({
  method: 'GET',
  url: '/<script>alert(1)</script>',
  headers: { accept, 'user-agent': '<b>' },
  socket: { remoteAddress: '192.0.2.1' },
})

function limiterWithRules() {
  const clock = manualClock(START_MS)
  const rules = [
    { name: 'burst', limit: 2, window: '1s' },
    { name: 'hour "&<ly', limit: 2, window: '1h' },
    { name: 'daily', limit: 100, window: '1d' },
  ]
  return createLimiter({ rules, maxKeys: 10, clock })
}

/** A refusal by the limit of a minute: nothing is charged after it, so it ends in 60 or 61 seconds. */
function refusal(): Decision {
  const clock = manualClock(0)
  const limiter = createLimiter({ limit: 1, window: '1m', granularity: '1s', maxKeys: 10, clock })
  limiter.check('key')
  return limiter.check('key')
}

test('a refusal is a problem document with the rules that refused', () => {
  const limiter = limiterWithRules()
  limiter.check('key', 2)
  const decision = limiter.check('key')
  const answers = new Answers<unknown>({})
  const answer = answers.refused({}, requestWith(), decision, false)
  assert.is(answer.decision, decision)
  assert.is(answer.status, 429)
  assert.is(answer.contentType, JSON_TYPE)
  assert.equal(JSON.parse(answer.body), {
    type: `${TYPES}#quota-exceeded`,
    title: 'Quota Exceeded',
    status: 429,
    detail: `Retry after ${decision.retryAfterSeconds} seconds.`,
    'violated-policies': ['burst', 'hour "&<ly'],
  })
})

test('a banned key is answered 403, for abnormal usage', () => {
  const limiter = limiterWithRules()
  limiter.block('key', '1s')
  const { status, body } = new Answers<unknown>({ statusCode: 420 }).refused(
    {},
    requestWith('*/*'),
    limiter.check('key'),
    true,
  )
  assert.is(status, 403)
  assert.equal(JSON.parse(body), {
    type: `${TYPES}#abnormal-usage-detected`,
    title: 'Abnormal Usage Detected',
    status: 403,
    detail: 'Retry after 1 second.',
    'violated-policies': ['burst', 'hour "&<ly', 'daily'],
  })
})

test('a denied address is answered 403, an outage 503', () => {
  const answers = new Answers<unknown>({ statusCode: 400, message: 'no' })
  const denied = answers.denied(requestWith())
  assert.is(denied.status, 403)
  assert.equal(JSON.parse(denied.body), { type: 'about:blank', title: 'Forbidden', status: 403 })
  const unavailable = answers.unavailable(requestWith())
  assert.is(unavailable.status, 503)
  const { type, title, status } = JSON.parse(unavailable.body)
  assert.equal(
    [type, title, status],
    [`${TYPES}#temporary-reduced-capacity`, 'Temporary Reduced Capacity', 503],
  )
  const outage = answers.outage(requestWith('text/plain'), { ...refusal(), retryAfterMs: 1_001 })
  assert.is(outage.status, 503)
  assert.match(outage.body, /The store of the rate limiter does not answer\. Retry after 2 seconds\.\n$/)
})

test('a request that would never be admitted is told so', () => {
  const decision = limiterWithRules().check('key', 3)
  const { body } = new Answers<unknown>({}).refused({}, requestWith(), decision, false)
  assert.is(JSON.parse(body).detail, 'This request is refused however late it is repeated.')
  assert.is(body.includes('Infinity'), false)
})

test('the client chooses text or HTML', () => {
  const answers = new Answers<unknown>({})
  const decision = refusal()
  const { retryAfterSeconds } = decision
  const text = answers.refused({}, requestWith('text/plain'), decision, false)
  assert.is(text.contentType, 'text/plain; charset=utf-8')
  assert.is(text.body, `Quota Exceeded. Retry after ${retryAfterSeconds} seconds.\n`)
  const html = answers.refused({}, requestWith('text/html'), decision, false)
  assert.is(html.contentType, 'text/html; charset=utf-8')
  assert.match(html.body, '<title>429 Quota Exceeded</title>')
  assert.match(html.body, `<h1>Quota Exceeded</h1><p>Retry after ${retryAfterSeconds} seconds.</p>`)
  assert.is(answers.denied(requestWith('text/plain')).body, 'Forbidden\n')
  assert.match(
    answers.unavailable(requestWith('text/html')).body,
    '<title>503 Temporary Reduced Capacity</title>',
  )
})

test('neither the request nor the names of rules are in HTML, and nothing of the request in a header', () => {
  const names = fc.string({ minLength: 1, unit: 'binary' })
  fc.assert(
    fc.property(names, names, fc.string({ unit: 'binary' }), (name, key, agent) => {
      const limiter = createLimiter({ name, limit: 1, window: '1m', maxKeys: 10, clock: manualClock(0) })
      const request = {
        ...requestWith('text/html'),
        url: agent,
        headers: { accept: 'text/html', 'user-agent': agent },
      }
      const plain = { ...requestWith('text/html'), headers: { accept: 'text/html' } }
      const answers = new Answers<unknown>({})
      const decision = limiter.check(key, 2)
      const { status, contentType, body } = answers.refused({}, request, decision, false)
      const other = createLimiter({ limit: 1, window: '1m', maxKeys: 10, clock: manualClock(0) })
      const expected = answers.refused({}, plain, other.check('key', 2), false)
      assert.equal([status, contentType, body], [expected.status, expected.contentType, expected.body])
      for (const each of [limiter, other]) each.close()
    }),
    { numRuns: 50 },
  )
})

test('a message and a status of the user', () => {
  const request = { name: 'request' }
  const decision = refusal()
  const refused = (options: ConstructorParameters<typeof Answers<typeof request>>[0], isBanned = false) => {
    const answer = new Answers(options).refused(request, requestWith('text/html'), decision, isBanned)
    return [answer.status, answer.contentType, answer.body]
  }
  const text = 'text/plain; charset=utf-8'
  assert.equal(refused({ statusCode: 503, message: 'Slow down' }), [503, text, 'Slow down'])
  assert.equal(refused({ message: '' }), [429, text, ''])
  assert.equal(refused({ message: { error: 'limited' } }), [429, 'application/json', '{"error":"limited"}'])
  assert.equal(refused({ message: { error: 'limited' } }, true), [
    403,
    'application/json',
    '{"error":"limited"}',
  ])
  const message = (given: typeof request, { rule }: Decision) => `${given.name} ${rule}`
  assert.equal(refused({ message }), [429, text, 'request default'])
  const object = (_: unknown, { limit }: Decision) => ({ limit })
  assert.equal(refused({ message: object }), [429, 'application/json', '{"limit":1}'])
  const problem = JSON.parse(
    new Answers({ statusCode: 420 }).refused({}, requestWith(), decision, false).body,
  )
  assert.is(problem.status, 420)
})

test('an object is read once, at creation', () => {
  const message = { error: 'first' }
  const answers = new Answers<unknown>({ message })
  message.error = 'second'
  assert.is(answers.refused({}, requestWith(), refusal(), false).body, '{"error":"first"}')
})

test('a message that is no text and has no JSON is an error', () => {
  const unusable = [null, 5, true, undefined, Symbol('message'), { toJSON: () => undefined }]
  for (const message of unusable) {
    if (message !== undefined) {
      const create = () => new Answers<unknown>({ message: message as object })
      assertRaises(create, 'ERR_MILLRACE_INVALID_OPTION', 'message')
    }
    const answers = new Answers<unknown>({ message: () => message as object })
    const answer = () => answers.refused({}, requestWith(), refusal(), false)
    assertRaises(answer, 'ERR_MILLRACE_INVALID_OPTION', 'message(request, decision)')
  }
  const thrown = new Error('mine')
  const answers = new Answers<unknown>({
    message: () => {
      throw thrown
    },
  })
  try {
    answers.refused({}, requestWith(), refusal(), false)
    assert.unreachable()
  } catch (error) {
    assert.is(error, thrown)
  }
})

test.run()
