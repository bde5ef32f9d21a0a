/** What `groupLimit` does in every framework. */

import { createLimiter, manualClock } from 'millrace'
import type { GroupLimitOptions } from 'millrace/http'
import type { Test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Get, Serving } from './conformance.js'
import type { AnyOptions, FrameworkDriver } from './driver.js'

// biome-ignore lint/suspicious/noExplicitAny: the suite reaches requests only through the driver
type GroupOptions = GroupLimitOptions<any, any>

const ALICE = { 'x-account': 'alice', 'x-address': '192.0.2.1' }

export function testGroups(test: Test, driver: FrameworkDriver, serving: Serving): void {
  const byHeader = (name: string) => (request: unknown) => driver.header(request, name) ?? 'none'
  const keys = { account: { key: byHeader('x-account') }, address: { key: byHeader('x-address') } }
  /** Two requests a minute for an account, three an hour for an address, on a clock that stands still. */
  const members = {
    account: { limit: 2, window: '1m', ...keys.account },
    address: { limit: 3, window: '1h', ...keys.address },
  } as const
  const grouped = (options: Partial<GroupOptions>, use: (get: Get) => Promise<void>) =>
    serving({ clock: manualClock(1e9), members, ...options } as object, use)()
  const statusesOf = async (get: Get, requests: readonly Record<string, string>[]) => {
    const statuses: number[] = []
    for (const headers of requests) statuses.push((await get('/', headers)).status)
    return statuses
  }
  const requestsOf = (...pairs: readonly (readonly [account: string, address: string])[]) =>
    pairs.map(([account, address]) => ({ 'x-account': account, 'x-address': address }))

  test('a group admits what all members admit, and names them in the headers', async () =>
    grouped({}, async (get) => {
      const response = await get('/', ALICE)
      assert.is(response.status, 200)
      assert.is(response.headers.get('ratelimit'), '"account";r=1;t=61, "address";r=2;t=3620')
      assert.is(response.headers.get('ratelimit-policy'), '"account";q=2;w=60, "address";q=3;w=3600')
      assert.is(response.headers.get('retry-after'), null)
    }))

  test('a refusal of a group is that of the member that refused, and charges none', async () =>
    grouped({}, async (get) => {
      for (let i = 0; i < 2; i++) await get('/', ALICE)
      const byAccount = await get('/', ALICE)
      assert.is(byAccount.status, 429)
      assert.is(byAccount.headers.get('ratelimit'), '"account";r=0;t=61')
      assert.is(byAccount.headers.get('ratelimit-policy'), '"account";q=2;w=60')
      assert.is(byAccount.headers.get('retry-after'), '61')
      assert.equal((await byAccount.json())['violated-policies'], ['account'])
      // The address has room for one more: the refusal has not charged it.
      assert.equal(await statusesOf(get, requestsOf(['bob', '192.0.2.1'])), [200])
      const byAddress = await get('/', { 'x-account': 'carol', 'x-address': '192.0.2.1' })
      assert.is(byAddress.status, 429)
      assert.is(byAddress.headers.get('ratelimit'), '"address";r=0;t=3620')
      assert.is(byAddress.headers.get('retry-after'), '3620')
      assert.equal((await byAddress.json())['violated-policies'], ['address'])
      // So it is with the account, which another address may use.
      assert.equal(
        await statusesOf(
          get,
          requestsOf(['carol', '192.0.2.2'], ['carol', '192.0.2.2'], ['carol', '192.0.2.3']),
        ),
        [200, 200, 429],
      )
    }))

  test('the older headers show the member that refused, else the one with the least left', async () => {
    const limitOf = async (standard: 'draft-6' | 'draft-7' | 'x-ratelimit', name: string) => {
      const shown: (string | null)[] = []
      await grouped({ standard }, async (get) => {
        for (const headers of [
          ...requestsOf(['alice', 'a'], ['bob', 'a'], ['carol', 'a'], ['dan', 'a']),
          ALICE,
        ])
          shown.push((await get('/', headers)).headers.get(name))
      })
      return shown
    }
    assert.equal(await limitOf('draft-6', 'ratelimit-limit'), ['2', '3', '3', '3', '2'])
    assert.equal(await limitOf('x-ratelimit', 'x-ratelimit-limit'), ['2', '3', '3', '3', '2'])
    assert.equal(await limitOf('draft-7', 'ratelimit-policy'), [
      '2;w=60',
      '3;w=3600',
      '3;w=3600',
      '3;w=3600',
      '2;w=60',
    ])
  })

  test('a member of a group may have several rules, which its name begins', async () => {
    const rules = [
      { name: 'burst', limit: 1, window: '1s' },
      { name: 'hourly', limit: 9, window: '1h' },
    ] as const
    await grouped({ members: { ...members, account: { rules, ...keys.account } } }, async (get) => {
      const response = await get('/', ALICE)
      const names = '"account.burst";q=1;w=1, "account.hourly";q=9;w=3600, "address";q=3;w=3600'
      assert.is(response.headers.get('ratelimit-policy'), names)
      const refused = await get('/', ALICE)
      assert.is(refused.headers.get('ratelimit-policy'), '"account.burst";q=1;w=1')
      assert.equal((await refused.json())['violated-policies'], ['account.burst'])
    })
  })

  test('the members of a group may be limiters of the caller, also pooled ones, and keys promises', async () => {
    const account = createLimiter({ limit: 1, window: '1m', engine: 'pool', pool: { maxThreads: 1 } })
    const address = createLimiter({ limit: 3, window: '1h' })
    const key = async (request: unknown) => byHeader('x-account')(request)
    const own = { account: { limiter: account, key }, address: { limiter: address, ...keys.address } }
    await serving({ members: own } as never, async (get) => {
      assert.equal(await statusesOf(get, [ALICE, ALICE]), [200, 429])
    })()
    assert.equal([(await account.peek('alice')).remaining, address.peek('192.0.2.1').remaining], [0, 2])
    address.close()
    await account.close()
  })

  test('the functions of a group are given the decision of the group, and the key that was refused', async () => {
    const told: unknown[] = []
    const message = (_: unknown, { member }: { member: string }) => `too many of this ${member}`
    // The key is the last of what is given: in Nest behind the context.
    const onLimited = (...given: readonly unknown[]) =>
      told.push([(given[1] as { member: string }).member, given.at(-1)])
    await grouped({ message, onLimited } as Partial<GroupOptions>, async (get) => {
      for (let i = 0; i < 2; i++) await get('/', ALICE)
      assert.is(await (await get('/', ALICE)).text(), 'too many of this account')
      await get('/', { ...ALICE, 'x-account': 'bob' })
      assert.is(await (await get('/', { ...ALICE, 'x-account': 'carol' })).text(), 'too many of this address')
    })
    assert.equal(told, [
      ['account', 'alice'],
      ['address', '192.0.2.1'],
    ])
    await grouped(driver.teapot() as Partial<GroupOptions>, async (get) => {
      for (let i = 0; i < 2; i++) await get('/', ALICE)
      const { status, headers } = await get('/', ALICE)
      assert.equal([status, headers.get('retry-after')], [418, '61'])
    })
  })

  test('a group keeps its decision for the handler, and gives back what does not count', async () =>
    grouped({ countIf: (response) => driver.statusOf(response) >= 400 }, async (get) => {
      for (let i = 0; i < 3; i++) assert.is((await get('/status/204', ALICE)).status, 204)
      const decision = await (await get('/decision', ALICE)).json()
      assert.equal([decision.member, decision.members.address.remaining], ['account', 2])
      for (let i = 0; i < 2; i++) assert.is((await get('/status/404', ALICE)).status, 404)
      assert.is((await get('/status/204', ALICE)).status, 429)
    }))

  test('a group takes a cost, and limits of the request by the names of members', async () => {
    const number = (name: string) => (request: unknown) => Number(driver.header(request, name))
    const limit = (request: unknown) => ({ account: number('x-limit')(request) })
    await grouped({ cost: number('x-cost'), limit }, async (get) => {
      const statusOf = async (cost: string, own: string) =>
        (await get('/', { ...ALICE, 'x-cost': cost, 'x-limit': own })).status
      assert.equal(
        [await statusOf('2', '1'), await statusOf('2', '9'), await statusOf('2', '9')],
        [429, 200, 429],
      )
    })
  })

  test('a group in shadow refuses nothing, and counts by member', async () => {
    const counted = async (shadow: boolean) => {
      let found: readonly unknown[] = []
      await serving({ clock: manualClock(1e9), members, shadow } as AnyOptions, async (get, { stats }) => {
        const statuses = await statusesOf(get, [ALICE, ALICE, ALICE])
        const { admitted, refused, shadowRefused, routes } = await stats()
        const { account, address } = routes.default!.rules
        const ofMembers = [account, address].map((each) => [
          each!.admitted,
          each!.refused,
          each!.shadowRefused,
        ])
        found = [statuses, [admitted, refused, shadowRefused], ...ofMembers]
      })()
      return found
    }
    assert.equal(await counted(false), [
      [200, 200, 429],
      [2, 1, 0],
      [2, 1, 0],
      [2, 0, 0],
    ])
    assert.equal(await counted(true), [
      [200, 200, 200],
      [3, 0, 1],
      [3, 0, 1],
      [3, 0, 0],
    ])
  })

  test('a reset of a group forgets the keys of the members that it names', async () =>
    serving({ clock: manualClock(1e9), members } as AnyOptions, async (get, { reset }) => {
      assert.equal(await statusesOf(get, [ALICE, ALICE, ALICE]), [200, 200, 429])
      await reset({ address: 'alice' })
      assert.equal(await statusesOf(get, [ALICE]), [429])
      await reset({ account: 'alice' })
      assert.equal(await statusesOf(get, [ALICE, ALICE]), [200, 429]) // the address is full, too
      for (const wrong of ['alice', { name: 'alice' }]) {
        const code = await reset(wrong as never).then(
          () => 'none',
          (error) => error.code,
        )
        assert.is(code, 'ERR_MILLRACE_INVALID_KEY')
      }
    })())

  for (const answer of ['fail', 'pass'] as const) {
    test(`with onError '${answer}', no key of a member is without a limit`, async () => {
      const errors: unknown[] = []
      const onError = (error: { option?: string }) => {
        errors.push(error.option)
        return answer
      }
      const key = (request: unknown) => driver.header(request, 'x-account') as string
      const own = { ...members, account: { ...members.account, key } }
      const fallback = driver.hasNoSocket === undefined ? {} : { address: () => '192.0.2.9' }
      await grouped({ members: own, onError, ...fallback } as never, async (get) => {
        const statuses = await statusesOf(get, [
          { 'x-address': 'a' },
          { 'x-address': 'a' },
          { 'x-address': 'a' },
        ])
        assert.equal(statuses, answer === 'fail' ? [503, 503, 503] : [200, 200, 429])
      })
      assert.equal(new Set(errors), new Set(['members.account.key']))
    })
  }

  if (driver.hasNoSocket === undefined) {
    test('a member of a group without a key limits by the address', async () => {
      const address = { limit: 1, window: '1m' } as const
      await grouped({ members: { account: members.account, address }, trustProxy: 1 }, async (get) => {
        const from = (client: string) => ({ ...ALICE, 'x-forwarded-for': client })
        const statuses = await statusesOf(get, [from('192.0.2.1'), from('192.0.2.1'), from('192.0.2.2')])
        assert.equal(statuses, [200, 429, 200])
      })
    })
  }

  test('a group and a limiter in one chain both charge, and name all their items', async () => {
    const clock = manualClock(1e9)
    const all = { name: 'all', limit: 10, window: '1m', clock, key: () => 'everybody' }
    await serving([all, { clock, members }] as AnyOptions[], async (get) => {
      const { headers } = await get('/', ALICE)
      assert.is(headers.get('ratelimit-policy'), '"all";q=10;w=60, "account";q=2;w=60, "address";q=3;w=3600')
    })()
  })
}
