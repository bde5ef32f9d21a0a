// run: modules
// The examples of docs/reference/http-headers.md are what is written.
import { createLimiter, group, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { BY_GROUP } from '#millrace/http/groups/group-limits.js'
import { exposedHeaders, RateLimitHeaders, type Standard } from '#millrace/http/headers/headers.js'
import { Answers } from '#millrace/http/problem.js'
import { START_MS } from '../limiter/support.js'
import { readText } from '../package/root.js'

const page = readText('docs/reference/http-headers.md')
/** The blocks of the page, in order. */
const blocks = (language: string): string[] =>
  [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)]
    .filter(([, each]) => each === language)
    .map(([, , text]) => text!)

/** A response that keeps its headers as text. */
class Lines extends Map<string, string> {
  override toString(): string {
    return [...this].map(([name, value]) => `${name}: ${value}\n`).join('')
  }
}

const ACCESS = {
  set: (response: Lines, name: string, value: string) => void response.set(name, value),
  get: (response: Lines, name: string) => response.get(name),
}

function oneRule(standard: Standard): string {
  const clock = manualClock(START_MS)
  const limiter = createLimiter({ limit: 100, window: '1m', maxKeys: 10, clock })
  const headers = new RateLimitHeaders(standard, limiter, ACCESS, () => 1_700_000_000_000)
  limiter.check('key', 50)
  const decision = limiter.peek('key', 0)
  clock.advance(decision.resetMs - 30_000)
  const response = new Lines()
  headers.write(response, limiter.peek('key', 0), false)
  return response.toString()
}

function twoRules(): { texts: string[]; body: string } {
  const rules = [
    { name: 'burst', limit: 10, window: '1s' },
    { name: 'hourly', limit: 1_000, window: '1h' },
  ]
  const limiter = createLimiter({ rules, maxKeys: 10, clock: manualClock(START_MS) })
  const headers = new RateLimitHeaders('draft-11', limiter, ACCESS)
  const first = new Lines()
  headers.write(first, limiter.check('key'), false)
  for (let i = 0; i < 9; i++) limiter.check('key')
  const last = new Lines()
  const decision = limiter.check('key')
  headers.write(last, decision, false)
  headers.writeRetryAfter(last, decision)
  const { body } = new Answers<unknown>({}).refused({}, { headers: {}, socket: {} }, decision, false)
  return { texts: [first.toString(), last.toString()], body }
}

function ofGroup(): string {
  const account = createLimiter({ limit: 5, window: '15m', maxKeys: 10, clock: manualClock(START_MS) })
  const address = createLimiter({ limit: 20, window: '15m', maxKeys: 10, clock: manualClock(START_MS) })
  const members = { account: { limiter: account }, address: { limiter: address } }
  const { headers } = BY_GROUP.limitsOf({ members }, ACCESS, []).others!
  const logins = group({ account, address })
  const keys = { account: 'alice', address: '192.0.2.1' }
  for (let i = 0; i < 5; i++) logins.check(keys)
  const response = new Lines()
  const decision = logins.check(keys)
  headers.write(response, decision, false)
  headers.writeRetryAfter(response, decision)
  return response.toString()
}

test('the examples of headers, in the order of the page', () => {
  const exposed = `Access-Control-Expose-Headers: ${exposedHeaders('draft-11')}\n`
  const older = (['draft-7', 'draft-6', 'x-ratelimit'] as const).map(oneRule)
  assert.equal(blocks('http'), [oneRule('draft-11'), ...twoRules().texts, ofGroup(), ...older, exposed])
})

test('the example of a body', () => {
  const [example, ...others] = blocks('json')
  assert.equal(others, [])
  assert.equal(JSON.parse(twoRules().body), JSON.parse(example!))
})

test('the table of forms has the headers of each', () => {
  for (const standard of ['draft-11', 'draft-7', 'draft-6', 'x-ratelimit'] as const) {
    const row = page.split('\n').find((line) => line.startsWith(`| [\`'${standard}'\`]`))!
    const names = [...row.split('|')[2]!.matchAll(/`([^`]+)`/g)].map(([, name]) => name)
    assert.equal([...names, 'Retry-After'].join(', '), exposedHeaders(standard), standard)
  }
})

test.run()
