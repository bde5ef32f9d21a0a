// An option that is undefined is one that is not set, in every option of a limiter, a middleware and a call.
import { createServer } from 'node:http'
import { createLimiter, group } from 'millrace'
import { groupLimit, rateLimit, writeHeaders } from 'millrace/http'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { listen, shut } from './serve.js'

const RULE = { limit: 2, window: '1m' } as const
const OF_RULES =
  'name granularity edge algorithm align period timeZone burst maxLimit unit rangeSum countRefused shadow'
const OF_LIMITERS = 'rules maxKeys onFull engine pool clock shared hugePages nearLimit'
const OF_REQUESTS =
  'trustProxy ipv6Subnet nat64Prefixes cost keyTimeoutMs skip allow deny ignoreUserAgents statusCode message handler onLimited countIf onError standard exposeHeaders'
const OF_RATE_LIMIT = 'limiter key routes ban delay'

const undefinedOf = (...lists: readonly string[]): object =>
  Object.fromEntries(lists.flatMap((list) => list.split(' ')).map((name) => [name, undefined]))

test('options of limiters and of their calls', async () => {
  const limiter = createLimiter({ ...RULE, ...undefinedOf(OF_RULES, OF_LIMITERS) })
  assert.equal(limiter.rule, createLimiter(RULE).rule)
  assert.is(limiter.check('a', undefined, { limit: undefined }).remaining, 1)
  const { remaining } = await limiter.wait('a', { cost: undefined, limit: undefined, signal: undefined })
  assert.is(remaining, 0)
  const logins = group({ account: limiter })
  assert.is(logins.check({ account: 'b' }, 1, { limit: undefined }).remaining, 1)
  await logins.wait({ account: 'b' }, { cost: undefined, limit: undefined, signal: undefined })
  const pooled = createLimiter({ ...RULE, ...undefinedOf(OF_RULES), engine: 'pool', pool: undefined })
  assert.is((await pooled.check('a')).remaining, 1)
  await pooled.close()
})

test('options of middleware, of members, and of headers', async () => {
  const none = undefinedOf(OF_RULES, OF_LIMITERS, OF_REQUESTS, OF_RATE_LIMIT)
  const limited = rateLimit({ ...none, ...RULE })
  const { shared: _, ...ofGroups } = undefinedOf(OF_LIMITERS, OF_REQUESTS, 'limit') as Record<string, never>
  const { rules: __, ...known } = ofGroups
  const member = { ...undefinedOf(OF_RULES, 'rules limiter key'), ...RULE }
  const grouped = groupLimit({ ...known, members: { account: member } })
  for (const each of [limited, grouped]) {
    const server = createServer((request, response) => each(request, response, () => response.end()))
    const { status, headers } = await fetch(await listen(server))
    assert.is(status, 200)
    assert.match(headers.get('ratelimit')!, /r=1;t=/)
    await shut(server)
    await each.close()
  }
  const headers = new Headers()
  const decision = createLimiter(RULE).check('a')
  writeHeaders(headers, decision, { standard: undefined, exposeHeaders: undefined, limiter: undefined })
  assert.match(headers.get('ratelimit')!, /r=1;t=/)
})

test.run()
