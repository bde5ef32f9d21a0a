// run: once
// Groups of limiters on Redis: one call of the script decides, all or nothing.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { inspect } from 'node:util'
import { Redis } from 'ioredis'
import { createLimiter, group } from 'millrace'
import { createRedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import { test as any } from 'uvu'
import * as assert from 'uvu/assert'
import { poll } from './poll.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'

const idle = () => new Redis(1, '127.0.0.1', { lazyConnect: true })
const client = idle()

const made = (options: Partial<RedisLimiterOptions> = {}) =>
  createRedisLimiter({
    ...{ client, prefix: 'account', limit: 5, window: '1h', deadline: '1m', ...options },
  } as RedisLimiterOptions)

const KEYS = { account: 'alice', address: 'home' }

type Scene = Awaited<ReturnType<typeof scene>>

/** A server, and a group of 5 by account and of 8 by address. */
async function withGroup(
  options: Partial<RedisLimiterOptions>,
  act: (scene: Scene) => Promise<void>,
): Promise<void> {
  const all = await scene(options)
  try {
    await act(all)
  } finally {
    await all.account.close()
    await all.address.close()
    all.client.disconnect()
    await all.server.stop()
  }
}

async function scene(options: Partial<RedisLimiterOptions>) {
  const server = await startRedis()
  const client = new Redis(server.port, '127.0.0.1')
  const account = made({ client, ...options })
  const address = made({ client, prefix: 'address', limit: 8, ...options })
  await account.ready()
  const both = group({ account, address })
  const used = () => Promise.all([account.usage(KEYS.account), address.usage(KEYS.address)])
  return { server, client, account, address, both, used }
}

test('a request to all members is one call of the script', () =>
  withGroup({}, async ({ client, both, used }) => {
    await both.check(KEYS) // which may send the source
    await client.config('RESETSTAT')
    const decision = await both.check(KEYS, 2)
    const { allowed, members, source } = decision
    const stats = await client.info('commandstats')
    assert.match(stats, /cmdstat_evalsha:calls=1,/)
    assert.not.match(stats, /cmdstat_eval:/)
    assert.equal([allowed, members.account.remaining, members.address.remaining], [true, 2, 5])
    assert.equal([source, decision.toJSON().source], ['redis', 'redis'])
    assert.equal(await used(), [3, 3])
  }))

test('of many requests at once, as many are admitted as fit all members; the others charge none', () =>
  withGroup({}, async ({ both, used, address }) => {
    await address.penalize(KEYS.address, 4)
    const decided = await Promise.all(Array.from({ length: 100 }, () => both.check(KEYS)))
    assert.is(decided.filter(({ allowed }) => allowed).length, 4)
    assert.ok(decided.every(({ allowed, member }) => allowed || member === 'address'))
    assert.equal(await used(), [4, 8])
  }))

test('a changed limit of a member holds in the group', () =>
  withGroup({}, async ({ both, account }) => {
    await account.update('default', { limit: 2 })
    const { allowed, member } = await both.check(KEYS, 3)
    assert.equal([allowed, member], [false, 'account'])
    assert.ok((await both.check(KEYS, 2)).allowed)
  }))

test('a pending wait of the group ends when its charge is refunded', () =>
  withGroup({}, async ({ both, used }) => {
    const first = await both.check(KEYS, 5)
    const waiting = both.wait(KEYS, { cost: 3 })
    const aborted = both
      .wait(KEYS, { signal: AbortSignal.abort(new Error('enough')) })
      .catch(({ message }) => message)
    assert.is(await aborted, 'enough')
    await both.refund(first)
    assert.ok((await waiting).allowed)
    assert.equal(await used(), [3, 3])
  }))

test('charges of the group that Redis has lost are restored', () =>
  withGroup({}, async ({ both, client, used }) => {
    await both.check(KEYS, 4)
    await client.flushall()
    // A value that is born in the same millisecond as the one before is taken for it.
    const isRestored = async () => (await both.peek(KEYS)) && (await used()).join() === '4,4'
    await poll(isRestored, 'the charges')
    assert.not((await both.check(KEYS, 2)).allowed)
  }))

for (const onOutage of ['closed', 'open'] as const)
  test(`${onOutage}: while Redis does not answer, the policy decides for all members`, () =>
    withGroup({ onOutage, deadline: 50 }, async ({ both, server }) => {
      await server.pause()
      const decision = await both.check(KEYS)
      assert.is(decision.allowed, onOutage === 'open')
      for (const part of Object.values(decision.members)) assert.is(part.source, 'outage')
      assert.equal([decision.source, decision.toJSON().source], ['outage', 'outage'])
      assert.match(inspect(decision), /^[^{]*{[^{]*source: 'outage'/)
      const thrown = await both.checkOrThrow(KEYS).catch((reason) => reason)
      if (onOutage === 'open') assert.equal([thrown.allowed, thrown.source], [true, 'outage'])
      else assert.is(thrown.message, 'not decided: the store does not answer; retry after 1 s')
      server.resume()
    }))

test('a group with a closed member is closed', () =>
  withGroup({}, async ({ both, account, address }) => {
    await both.check(KEYS, 5)
    const waiting = both.wait(KEYS).catch((reason) => reason)
    await address.close()
    const error = await both.check(KEYS).catch((reason) => reason)
    assert.equal([error.code, error.option], ['ERR_MILLRACE_CLOSED', 'members.address'])
    assert.is((await waiting).code, 'ERR_MILLRACE_CLOSED')
    assert.ok((await account.check('bob')).allowed, 'the other member goes on')
  }))

const BAD_MEMBERS: Readonly<Record<string, () => object>> = {
  'two clients': () => ({ a: made(), b: made({ client: idle(), prefix: 'b' }) }),
  'one prefix and rules of one name': () => ({ a: made(), b: made({ limit: 9 }) }),
  'two policies for an outage': () => ({ a: made(), b: made({ prefix: 'b', onOutage: 'open' }) }),
  'shares of processes': () => ({ a: made(), b: made({ prefix: 'b', onOutage: 'local', nodes: 2 }) }),
  'a limiter in memory': () => ({ a: made(), b: createLimiter({ limit: 5, window: '1h' }) }),
}

for (const [kind, membersOf] of Object.entries(BAD_MEMBERS))
  any(`refused by name: ${kind}`, () => {
    const members = membersOf()
    try {
      group(members as never)
      assert.unreachable()
    } catch (error) {
      const { code, option } = error as { code: string; option: string }
      assert.equal([code, option], ['ERR_MILLRACE_INVALID_OPTION', 'members.b'])
    }
    for (const limiter of Object.values(members)) void limiter.close()
  })

any('refused by name: the same limiter twice', () => {
  const limiter = made()
  assert.throws(() => group({ a: limiter, b: limiter }), /a limiter other than members\.a/)
  void limiter.close()
})

test('a refusal is published once, with the member and its key, and counted so by top', async () => {
  await withGroup({}, async ({ both }) => {
    await both.check(KEYS, 5)
    await both.top({ by: 'refused' })
    const heard: unknown[] = []
    const hear = (message: unknown) => heard.push(message)
    subscribe('millrace:limited', hear)
    await both.check(KEYS)
    await both.check(KEYS, 9)
    unsubscribe('millrace:limited', hear)
    const told = heard.map((message) => [
      (message as { rule: string }).rule,
      (message as { key: string }).key,
    ])
    assert.equal(told, [
      ['account', 'alice'],
      ['account', 'alice'],
    ])
    assert.equal(await both.top({ by: 'refused' }), [{ key: 'alice', count: 2, error: 0 }])
  })
})

test.run()
