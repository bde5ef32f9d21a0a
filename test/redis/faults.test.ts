// run: also-full
// What a limiter does while its server is out of reach, whatever the reason, and afterwards.
import { createRedisLimiter, type OnOutage, type RedisLimiter } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { settled } from '../limiter/support.js'
import { sized } from '../size.js'
import { CLIENTS, LIBRARIES, type Library } from './clients.js'
import { FAULTS, type Fault, type Place, withPlace } from './faults.js'
import { poll } from './poll.js'
import { leavingNothing } from './resources.js'
import { redisTest as test } from './skip.js'

/** What each policy says to a request for one unit. */
const DECIDED = {
  closed: { allowed: false, source: 'outage' },
  open: { allowed: true, source: 'outage' },
  local: { allowed: true, source: 'local' },
} as const
const POLICIES = Object.keys(DECIDED) as OnOutage[]

/** Each fault with each client library; in the quick tests with one of the two. */
const CASES = FAULTS.flatMap((fault, i) =>
  LIBRARIES.filter((_, j) => sized({ quick: i % LIBRARIES.length === j, full: true })).map((library) => ({
    fault,
    library,
  })),
)

type Limiters = Readonly<Record<OnOutage, RedisLimiter>>

function limitersOf(library: Library, { name, proxy }: Place): Limiters {
  const of = (onOutage: OnOutage) =>
    createRedisLimiter({
      client: CLIENTS[library](proxy.port, name),
      prefix: onOutage,
      limit: 10_000,
      window: '1h',
      onOutage,
      nodes: 2,
    })
  return { closed: of('closed'), open: of('open'), local: of('local') }
}

const each = <T>(act: (policy: OnOutage) => Promise<T>): Promise<T[]> => Promise.all(POLICIES.map(act))

/** Methods that decide answer by the policy, the others reject. All settle, though many are called at once. */
async function decidesAlone(limiter: RedisLimiter, policy: OnOutage, fault: Fault): Promise<void> {
  const expected = DECIDED[policy]
  const checks = await Promise.all(Array.from({ length: 50 }, () => limiter.check('key')))
  for (let i = 0; i < 5; i++) checks.push(await limiter.check('key'))
  const others = await Promise.all([
    limiter.peek('key'),
    limiter.reserve('key', 1).then((reserved) => reserved.decision),
  ])
  const { allowed } = await limiter.checkMany(['key', 'other'])
  assert.equal([...allowed], [Number(expected.allowed), Number(expected.allowed)])
  for (const { allowed, source } of [...checks, ...others]) assert.equal({ allowed, source }, expected)
  const changes = await Promise.all(
    [
      limiter.penalize('key', 1),
      limiter.refund('key', 1),
      limiter.block('other', '1s'),
      limiter.unblock('other'),
      limiter.clear('other'),
      limiter.usage('key'),
      ...(fault.answersReads ? [] : [limiter.clearAll()]), // it reads the names first
    ].map((change: Promise<unknown>) => settled(change)),
  )
  for (const change of changes)
    assert.is((change as PromiseRejectedResult).reason?.code, 'ERR_MILLRACE_OUTAGE')
  assert.ok((await limiter.stats()).outages >= checks.length)
}

/** Runs all cases at once. */
async function inEachCase(act: (limiters: () => Limiters, fault: Fault, place: Place) => Promise<void>) {
  const outcomes = await Promise.allSettled(
    CASES.map(({ fault, library }) =>
      withPlace((place) => act(() => limitersOf(library, place), fault, place)),
    ),
  )
  const failed = outcomes.flatMap((outcome, i) =>
    outcome.status === 'fulfilled'
      ? []
      : [`${CASES[i]!.library}, ${CASES[i]!.fault.name}: ${outcome.reason}`],
  )
  assert.equal(failed, [])
}

const recovers = (limiter: RedisLimiter) =>
  poll(async () => (await limiter.check('key')).source === 'redis', 'Redis')

const closes = ({ proxy }: Place, limiters: Limiters) =>
  each((policy) => limiters[policy].close()).then(() =>
    poll(() => proxy.open === 0, 'the end of connections'),
  )

test('a server that gets out of reach: each call settles by the policy, then Redis decides again', () =>
  leavingNothing(() =>
    inEachCase(async (make, fault, place) => {
      const limiters = make()
      await each((policy) => recovers(limiters[policy]))
      await fault.begin(place)
      await each((policy) => decidesAlone(limiters[policy], policy, fault))
      await fault.end(place)
      await each((policy) => recovers(limiters[policy]))
      await closes(place, limiters)
    }),
  ))

test('a server that is out of reach at the start: each call settles by the policy, and it is found later', () =>
  leavingNothing(() =>
    inEachCase(async (make, fault, place) => {
      await fault.begin(place)
      const limiters = make()
      await each((policy) => decidesAlone(limiters[policy], policy, fault))
      await fault.end(place)
      await each((policy) => limiters[policy].ready())
      await each((policy) => recovers(limiters[policy]))
      await closes(place, limiters)
    }),
  ))

test('a limiter that is closed while its server is out of reach: its calls settle, and nothing stays', () =>
  leavingNothing(() =>
    inEachCase(async (make, fault, place) => {
      await fault.begin(place)
      const limiters = make()
      const calls = each((policy) =>
        Promise.all([limiters[policy].check('key'), limiters[policy].peek('key')]),
      )
      const waiting = settled(limiters.closed.wait('key'))
      const ready = each((policy) => settled(limiters[policy].ready()))
      await each((policy) => limiters[policy].close())
      for (const [i, decided] of (await calls).entries())
        for (const { allowed, source } of decided) assert.equal({ allowed, source }, DECIDED[POLICIES[i]!])
      for (const outcome of [await waiting, ...(fault.answersReads ? [] : await ready)])
        assert.is((outcome as PromiseRejectedResult).reason?.code, 'ERR_MILLRACE_CLOSED')
      await fault.end(place)
    }),
  ))

test.run()
