// run: full
/** Real load on every framework: its server's own log and each of its responses are judged. */
import autocannon from 'autocannon'
import { createLimiter, type Limiter, manualClock } from 'millrace'
import { parseList } from 'structured-headers'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { InlineDecision } from '#millrace/core/inline-decision.js'
import { KeyJudge } from '../clock/key-judge.js'
import { type FrameworkDriver, http1Client } from './driver.js'
import { allDrivers } from './drivers.js'

const RULE = { limit: 20, windowMs: 250, parts: 10 }
const KEYS = ['alice', 'bob', 'carol']
const CONNECTIONS = 12
/** As many requests as the server answers in this time, or this number of them. */
const TIMED = { duration: 2 }
const COUNTED = { amount: 1_200 }
type Size = { readonly duration?: number; readonly amount?: number }
const MINUTE = 60
/** Requests at once, and rounds of them, of the clients that wait. */
const CROWD = 20
const ROUNDS = 10

interface Logged {
  readonly key: string
  readonly decision: InlineDecision
}

/** The limiter, with a log of its decisions. */
function logged(limiter: Limiter, log: Logged[]): Limiter {
  return new Proxy(limiter, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      if (name !== 'check') return value.bind(target)
      return (key: string, ...rest: []) => {
        const decision = target.check(key, ...rest) as InlineDecision
        log.push({ key, decision })
        return decision
      }
    },
  })
}

interface Tally {
  served: number
  refused: number
}

/**
 * Sends requests for all keys, and judges the headers of each response.
 * @param window the window in seconds, rounded up
 */
async function load(driver: FrameworkDriver, url: string, size: Size, window: number): Promise<Tally> {
  const tally: Tally = { served: 0, refused: 0 }
  const take = (status: number, header: (name: string) => string | undefined | null) => {
    if (status === 200) tally.served++
    else tally.refused++
    assertHeaders(status, (name) => header(name) ?? undefined, window)
  }
  await (driver.client === undefined
    ? loadHttp1(url, size, take)
    : loadBy(driver.client.fetch, url, size, take))
  return tally
}

type Take = (status: number, header: (name: string) => string | undefined | null) => void

async function loadHttp1(url: string, size: Size, take: Take): Promise<void> {
  const failures: unknown[] = []
  const result = await autocannon({
    url,
    connections: CONNECTIONS,
    ...size,
    requests: KEYS.map((key) => ({ headers: { 'x-key': key } })),
    setupClient(client) {
      client.on('headers', (response) => {
        const { statusCode, headers } = response as unknown as { statusCode: number; headers: string[] }
        const at = (name: string) =>
          headers.findIndex((each, i) => i % 2 === 0 && each.toLowerCase() === name)
        try {
          take(statusCode, (name) => (at(name) < 0 ? undefined : headers[at(name) + 1]))
        } catch (error) {
          failures.push(error)
        }
      })
    },
  })
  if (failures.length > 0) throw failures[0]
  assert.is(result.errors, 0)
}

/** The same by a client that autocannon does not have. */
async function loadBy(fetch: typeof http1Client.fetch, url: string, size: Size, take: Take): Promise<void> {
  const { duration = Number.POSITIVE_INFINITY, amount = Number.POSITIVE_INFINITY } = size
  const endMs = performance.now() + duration * 1_000
  const most = amount / CONNECTIONS
  const send = async (_: unknown, i: number) => {
    for (let n = i; n < i + most && performance.now() < endMs; n++) {
      const response = await fetch(url, { method: 'GET', headers: { 'x-key': KEYS[n % KEYS.length]! } })
      take(response.status, (name) => response.headers.get(name))
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, send))
}

/** All headers are there, are well-formed, and agree with each other and with the status. */
function assertHeaders(status: number, header: (name: string) => string | undefined, window: number): void {
  const [[policy, policyParameters]] = parseList(header('ratelimit-policy')!) as [
    [string, Map<string, number>],
  ]
  assert.is(policy, 'default')
  assert.equal(
    [...policyParameters],
    [
      ['q', RULE.limit],
      ['w', window],
    ],
  )
  const [[name, parameters]] = parseList(header('ratelimit')!) as [[string, Map<string, number>]]
  assert.is(name, 'default')
  const [left, seconds] = [parameters.get('r')!, parameters.get('t')!]
  assert.ok(seconds >= 0 && seconds <= window + 1, `t=${seconds}`)
  if (status === 200) {
    assert.ok(left >= 0 && left < RULE.limit, `r=${left}`)
    assert.is(header('retry-after'), undefined)
  } else {
    assert.is(status, 429)
    assert.is(left, 0)
    assert.is(header('retry-after'), `${seconds}`)
    assert.ok(seconds > 0)
    assert.match(header('content-type')!, /^application\/problem\+json/)
  }
}

for (const driver of allDrivers) {
  const test = suite(driver.name)
  const { client = http1Client } = driver
  const key = (request: unknown) => driver.header(request, 'x-key')!

  test('no key is served more than its limit in any window, nor refused without reason', async () => {
    const log: Logged[] = []
    const { limit, windowMs, parts } = RULE
    const limiter = createLimiter({ limit, window: windowMs, granularity: windowMs / parts, maxKeys: 100 })
    const served = await driver.serve({ limiter: logged(limiter, log), key })
    const tally = await load(driver, served.url, TIMED, 1)
    await served.close()
    await limiter.close()
    const judges = new Map(KEYS.map((each) => [each, new KeyJudge(RULE)]))
    for (const { key, decision } of log) judges.get(key)!.judge(decision.at, 1, decision)
    const sum = (of: (judge: KeyJudge) => number) =>
      [...judges.values()].reduce((all, each) => all + of(each), 0)
    const [admitted, refused] = [sum((judge) => judge.admitted), sum((judge) => judge.refused)]
    // The last response of each connection may be missing.
    assert.ok(
      tally.served <= admitted && tally.served >= admitted - CONNECTIONS,
      `${tally.served} of ${admitted}`,
    )
    assert.ok(
      tally.refused <= refused && tally.refused >= refused - CONNECTIONS,
      `${tally.refused} of ${refused}`,
    )
    for (const [name, judge] of judges) assert.ok(judge.admitted > 0, name)
  })

  test('on a clock that stands still, a pool serves each key its limit, and nothing more', async () => {
    const options = { limit: RULE.limit, window: '1m', clock: manualClock(1e9), engine: 'pool' } as const
    const served = await driver.serve({ ...options, pool: { maxThreads: 2 }, key })
    const tally = await load(driver, served.url, COUNTED, MINUTE)
    await served.close()
    assert.is(tally.served, KEYS.length * RULE.limit)
    assert.is(tally.refused, COUNTED.amount - KEYS.length * RULE.limit)
  })

  test('a client that waits as long as Retry-After says is served', async () => {
    const clock = manualClock(1e9)
    const served = await driver.serve({ limit: 7, window: '10s', clock, key })
    const send = () => client.fetch(served.url, { method: 'GET', headers: { 'x-key': 'alice' } })
    for (let round = 0; round < ROUNDS; round++) {
      const responses = await Promise.all(Array.from({ length: CROWD }, send))
      const refused = responses.filter(({ status }) => status === 429)
      assert.ok(refused.length >= CROWD - 7, `${refused.length} refused`)
      const waits = new Set(refused.map(({ headers }) => Number(headers.get('retry-after'))))
      assert.is(waits.size, 1, 'all are told the same on a clock that stands still')
      clock.advance([...waits][0]! * 1_000)
      assert.is((await send()).status, 200)
      clock.advance(round * 317)
    }
    await served.close()
  })

  test.run()
}
