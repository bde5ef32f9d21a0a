// Claims about configuration stores, which hold for every backend. The test file of a backend calls `testStore`.
import { MillraceError } from 'millrace'
import * as assert from 'uvu/assert'
import type { ConfigChange, ConfigStore, StoredPolicy } from '#millrace/config/config-store.js'
import type { Policy } from '#millrace/config/policy.js'
import { poll } from '../redis/poll.js'

/** Where the documents of a test are: empty at first, and of no other test. */
export interface StorePlace {
  /** Opens a store on them: each time another one, as another process would. */
  open(): Promise<ConfigStore> | ConfigStore
  /** Writes a document as somebody else would: JSON or any other text. Undefined where nobody else can. */
  readonly plant?: (key: string, text: string) => Promise<void>
  /** Removes the documents, after all stores have been closed. */
  remove(): Promise<void>
}

type Register = (name: string, act: () => Promise<void>) => void

const MINUTE: Policy = { limit: 100, window: '1m' }
const BOTH: Policy = {
  rules: [
    { name: 'burst', limit: 10, window: '1s' },
    { name: 'hourly', limit: 1000, window: '1h', algorithm: 'token-bucket' },
  ],
}

async function fails(act: () => Promise<unknown>, code: string, text?: RegExp): Promise<MillraceError> {
  try {
    await act()
  } catch (error) {
    assert.instance(error, MillraceError)
    assert.is((error as MillraceError).code, code)
    if (text !== undefined) assert.match((error as MillraceError).message, text)
    return error as MillraceError
  }
  assert.unreachable(`expected ${code}`)
  throw new Error()
}

/** `makePlace` makes a place for one test. */
export function testStore(test: Register, makePlace: () => Promise<StorePlace>): void {
  const on = (
    name: string,
    act: (store: ConfigStore, place: StorePlace, more: () => Promise<ConfigStore>) => Promise<void>,
  ) =>
    test(name, async () => {
      const place = await makePlace()
      const opened: ConfigStore[] = []
      const open = async () => {
        opened.push(await place.open())
        return opened.at(-1)!
      }
      try {
        await act(await open(), place, open)
      } finally {
        for (const store of opened) await store.close()
        await place.remove()
      }
    })

  on('a policy is what was put, with a version', async (store, _, more) => {
    assert.is(await store.get('user:1'), undefined)
    const put = await store.put('user:1', MINUTE)
    assert.ok(put.version >= 1)
    assert.equal(await store.get('user:1'), { key: 'user:1', policy: MINUTE, version: put.version })
    await store.put('user:2', BOTH)
    const other = await more()
    assert.equal((await other.get('user:2'))?.policy, BOTH)
    assert.is(await store.get('user:3'), undefined)
  })

  on('versions rise, also over a deletion', async (store) => {
    const first = await store.put('a', MINUTE)
    const second = await store.put('a', MINUTE)
    assert.ok(second.version > first.version)
    assert.is(await store.delete('a'), true)
    assert.is(await store.delete('a'), false)
    assert.is(await store.get('a'), undefined)
    assert.ok((await store.put('a', MINUTE)).version > second.version)
  })

  on('ifVersion: a change of what somebody else has changed is refused', async (store, _, more) => {
    const other = await more()
    const { version } = await store.put('a', MINUTE, { ifVersion: null })
    await fails(() => other.put('a', BOTH, { ifVersion: null }), 'ERR_MILLRACE_CONFIG_CONFLICT', /no policy/)
    const next = await other.put('a', BOTH, { ifVersion: version })
    await fails(() => store.put('a', MINUTE, { ifVersion: version }), 'ERR_MILLRACE_CONFIG_CONFLICT')
    await fails(() => store.delete('a', { ifVersion: version }), 'ERR_MILLRACE_CONFIG_CONFLICT')
    assert.equal((await store.get('a'))?.policy, BOTH)
    assert.is(await store.delete('a', { ifVersion: next.version }), true)
    await fails(() => store.delete('a', { ifVersion: next.version }), 'ERR_MILLRACE_CONFIG_CONFLICT')
  })

  on('a copy of what another store has keeps its version, if it is to', async (store) => {
    const { version } = await store.put('a', MINUTE, { ifVersion: null, version: 7 })
    assert.is(version, 7)
    assert.is((await store.get('a'))?.version, 7)
    await fails(() => store.put('a', BOTH, { ifVersion: 6, version: 8 }), 'ERR_MILLRACE_CONFIG_CONFLICT')
    assert.is((await store.put('a', BOTH, { ifVersion: 7, version: 8 })).version, 8)
    assert.ok((await store.put('a', MINUTE)).version > 8)
    await fails(() => store.put('a', MINUTE, { version: -1 }), 'ERR_MILLRACE_INVALID_OPTION')
    await fails(() => store.delete('a', { version: 1 }), 'ERR_MILLRACE_INVALID_OPTION')
  })

  on(
    'of many writers at once each gets a version of its own, and one with ifVersion wins',
    async (store, _, more) => {
      const other = await more()
      const all = await Promise.all(
        Array.from({ length: 10 }, (_, i) =>
          (i % 2 ? store : other).put('a', { limit: i + 1, window: '1m' }),
        ),
      )
      assert.is(new Set(all.map(({ version }) => version)).size, 10)
      const latest = all.reduce((a, b) => (a.version > b.version ? a : b))
      assert.equal(await store.get('a'), latest)
      const results = await Promise.allSettled(
        Array.from({ length: 10 }, (_, i) =>
          (i % 2 ? store : other).put('a', MINUTE, { ifVersion: latest.version }),
        ),
      )
      assert.is(results.filter(({ status }) => status === 'fulfilled').length, 1)
    },
  )

  on('find: the first key that has a policy', async (store) => {
    await store.put('user:*', MINUTE)
    await store.put('user:vip:*', BOTH)
    assert.is((await store.find(['user:vip:1', 'user:vip:*', 'user:*']))?.key, 'user:vip:*')
    assert.is((await store.find(['user:1', 'user:*']))?.key, 'user:*')
    assert.is(await store.find(['other']), undefined)
    assert.is(await store.find([]), undefined)
  })

  on('find passes over keys that no policy can have', async (store) => {
    await store.put('\ufffd', MINUTE)
    await store.put('user:*', MINUTE)
    const odd = ['', 'x'.repeat(513), '\ud800', 'a\0b']
    assert.is(await store.find(odd), undefined)
    assert.is((await store.find([...odd, 'user:*']))?.key, 'user:*')
  })

  on('putMany: all are checked before one is stored, and each gets a new version', async (store) => {
    if (store.putMany === undefined) return
    const before = await store.put('key:1', BOTH)
    const entries = Array.from({ length: 250 }, (_, i) => ({ key: `key:${i}`, policy: MINUTE }))
    await store.putMany([...entries, { key: 'key:2', policy: BOTH }])
    const stored = (await store.list({ limit: 1_000 })) as StoredPolicy[]
    assert.is(stored.length, 250)
    for (const { key, policy } of stored) assert.equal(policy, key === 'key:2' ? BOTH : MINUTE, key)
    assert.ok((await store.get('key:1'))!.version > before.version)
    const wrong = [...entries, { key: 'key:wrong', policy: { limit: -1, window: '1m' } as const }]
    await store.putMany([])
    await store.delete('key:0')
    await fails(() => store.putMany!(wrong), 'ERR_MILLRACE_INVALID_POLICY', /^entries\[250\]: limit/)
    await fails(
      () => store.putMany!([{ key: '', policy: MINUTE }]),
      'ERR_MILLRACE_INVALID_KEY',
      /entries\[0\]: key/,
    )
    await fails(() => store.putMany!({} as []), 'ERR_MILLRACE_INVALID_OPTION', /entries/)
    assert.is(await store.get('key:0'), undefined)
    const end = store.addCheck(() => {
      throw new RangeError('none at all')
    })
    const refused = await store.putMany(entries).catch((error) => error)
    assert.instance(refused, RangeError)
    end()
    assert.is(await store.get('key:0'), undefined)
  })

  on('list: pages in the order of the bytes of keys, with a prefix', async (store) => {
    const keys = ['a', 'user:10', 'user:2', 'user:é', 'user:\u{ffee}', 'user:\u{1f600}', 'z']
    for (const key of [...keys].reverse()) await store.put(key, MINUTE)
    const all: string[] = []
    for (let after: string | undefined; ; after = all.at(-1)) {
      const page = await store.list(after === undefined ? { limit: 3 } : { limit: 3, after })
      all.push(...page.map(({ key }) => key))
      if (page.length < 3) break
    }
    assert.equal(all, keys)
    const users = await store.list({ prefix: 'user:', after: 'user:10' })
    assert.equal(
      users.map(({ key }) => key),
      keys.slice(2, 6),
    )
    assert.equal((users[0] as StoredPolicy).policy, MINUTE)
    assert.equal(await store.list({ prefix: 'none' }), [])
  })

  on(
    'count: how many documents begin with a prefix, as many as are listed',
    async (store, { plant }, more) => {
      const count = (prefix?: string) => store.count!(prefix === undefined ? undefined : { prefix })
      assert.equal([await count(), await count('')], [0, 0])
      const long = '键'.repeat(400) // longer than a sort key of DynamoDB
      const users = ['user:*', 'user:10', 'user:2', 'user:é', 'user:\u{ffee}', 'user:\u{1f600}']
      const odd = ['%_[(*?', '[', '(', '+', '-', '$gt', '.', '\\', 'b\u{d7ff}', 'b\u{d7ff}x', 'b\u{e000}']
      const last = ['\u{10ffff}', '\u{10ffff}x', `${long}1`, `${long}2`, `${long.slice(1)}x1`]
      const keys = [...users, 'user;', 'user', 'uses', ...odd, ...last]
      for (const key of keys) await store.put(key, MINUTE)
      await store.put('user:2', BOTH)
      assert.equal([await count(), await count('')], [keys.length, keys.length])
      assert.is(await count('user:'), users.length)
      for (const prefix of [...keys, 'u', 'use', 'b', long, `${long}12`, 'none', '\u{ff}', '\u{10ffff}y']) {
        const listed = await store.list({ prefix, limit: 1_000 })
        assert.equal([prefix, await count(prefix)], [prefix, listed.length])
        assert.is(listed.length, keys.filter((key) => key.startsWith(prefix)).length, prefix)
      }
      await store.delete('user:2')
      assert.equal([await count(), await count('user:')], [keys.length - 1, users.length - 1])
      assert.is(await (await more()).count!({ prefix: 'user:' }), users.length - 1)
      if (plant === undefined) return
      await plant('user:2', '{ "limit": -1, "window": "1m" }')
      assert.is(await count('user:'), users.length)
    },
  )

  on('keys of any characters, as long as they may be', async (store) => {
    const keys = ['x'.repeat(512), '键'.repeat(512), ' ', "it's", '"{}[]$.#\n', '__proto__', 'a:*', '*']
    for (const [i, key] of keys.entries()) await store.put(key, { limit: i + 1, window: '1m' })
    for (const [i, key] of keys.entries())
      assert.equal((await store.get(key))?.policy, { limit: i + 1, window: '1m' }, key)
    assert.is((await store.list()).length, keys.length)
  })

  on('bad input is refused by name, and nothing is stored', async (store) => {
    for (const key of ['', 'x'.repeat(513), '\ud800', 'a\0b', `${'a:'.repeat(9)}*`, 7])
      await fails(() => store.put(key as string, MINUTE), 'ERR_MILLRACE_INVALID_KEY')
    for (const policy of [
      undefined,
      {},
      { limit: -1, window: '1m' },
      { limit: 1, window: '1 minute' },
      { limit: 1, window: '1m', burst: 3 },
      { limit: 1, window: '1m', Limit: 2 },
      { rules: [] },
      {
        rules: [
          { limit: 1, window: '1s' },
          { limit: 1, window: '1m' },
        ],
      },
      { rules: [{ limit: 1, window: '1s' }], limit: 3 },
    ])
      await fails(() => store.put('a', policy as Policy), 'ERR_MILLRACE_INVALID_POLICY')
    await fails(
      () => store.put('a', { limit: -1, window: '1m' }),
      'ERR_MILLRACE_INVALID_POLICY',
      /limit.*got -1/,
    )
    await fails(() => store.put('a', MINUTE, { ifVersion: -1 }), 'ERR_MILLRACE_INVALID_OPTION')
    await fails(() => store.list({ limit: 0 }), 'ERR_MILLRACE_INVALID_OPTION')
    for (const prefix of ['x'.repeat(513), '\ud800', 'a\0b', 7 as unknown as string])
      await fails(() => store.count!({ prefix }), 'ERR_MILLRACE_INVALID_KEY', /^prefix/)
    for (const options of [null, { after: 'a' }, { limit: 1 }])
      await fails(() => store.count!(options as object), 'ERR_MILLRACE_INVALID_OPTION', /^options: .*prefix/)
    assert.equal(await store.list(), [])
  })

  on('a check may refuse a policy', async (store) => {
    const end = store.addCheck((policy) => {
      if ('limit' in policy && policy.limit === 7) throw new RangeError('no sevens')
    })
    await store.put('a', MINUTE)
    try {
      await store.put('a', { limit: 7, window: '1m' })
      assert.unreachable()
    } catch (error) {
      assert.instance(error, RangeError)
    }
    assert.equal((await store.get('a'))?.policy, MINUTE)
    end()
    await store.put('a', { limit: 7, window: '1m' })
  })

  on('a check is told of the policies that it let pass and that are not stored', async (store) => {
    const pending: Policy[] = []
    const end = store.addCheck(
      (policy) => void pending.push(policy),
      (policy) => void pending.splice(pending.indexOf(policy), 1),
    )
    const { version } = await store.put('a', MINUTE)
    assert.equal(pending, [MINUTE])
    await fails(() => store.put('a', BOTH, { ifVersion: version - 1 }), 'ERR_MILLRACE_CONFIG_CONFLICT')
    await fails(() => store.put('b', BOTH, { ifVersion: 7 }), 'ERR_MILLRACE_CONFIG_CONFLICT')
    await fails(() => store.put('a', { limit: -1, window: '1m' }), 'ERR_MILLRACE_INVALID_POLICY')
    assert.equal(pending, [MINUTE])
    const endOther = store.addCheck(() => {
      throw new RangeError('none at all')
    })
    assert.instance(await store.put('a', BOTH).catch((error) => error), RangeError)
    assert.equal(pending, [MINUTE])
    endOther()
    await store.put('b', BOTH)
    assert.equal(pending, [MINUTE, BOTH])
    end()
    await fails(() => store.put('a', MINUTE, { ifVersion: null }), 'ERR_MILLRACE_CONFIG_CONFLICT')
    assert.equal(pending, [MINUTE, BOTH])
  })

  on('watch: changes by this store and by others, until it is ended', async (store, _, more) => {
    const other = await more()
    const seen: ConfigChange[] = []
    const end = store.watch((change) => void seen.push(change))
    const knows = (key: string) => seen.some(({ keys, error }) => !error && (keys?.includes(key) ?? true))
    await store.put('own', MINUTE)
    await poll(() => knows('own'), 'the change by this store')
    if (store.watchDelayMs !== Number.POSITIVE_INFINITY) {
      seen.length = 0
      await other.put('others', MINUTE)
      await poll(() => knows('others'), 'the change by another store')
      seen.length = 0
      await other.delete('others')
      await poll(() => knows('others'), 'the deletion by another store')
    }
    end()
    end()
    const again = store.watch((change) => void seen.push(change))
    seen.length = 0
    await store.put('own', BOTH)
    await poll(() => knows('own'), 'a change after the watch has begun anew')
    again()
  })

  on('documents of others: the plain form, garbage, a later format', async (store, place) => {
    const { plant } = place
    if (plant === undefined) return
    await plant('plain', '{ "time_window_sec": 1, "capacity": 5, "granularity_sec": 0.1 }')
    const plain = await store.get('plain')
    assert.equal(plain, { key: 'plain', policy: { limit: 5, window: 1000, granularity: 100 }, version: 0 })
    await plant('later', '{ "format": 2, "version": 3, "limits": [] }')
    await fails(
      () => store.get('later'),
      'ERR_MILLRACE_INVALID_POLICY',
      /later: format: .*update Millrace, got 2/,
    )
    await plant('wrong', '{ "limit": -1, "window": "1m" }')
    await fails(() => store.find(['none', 'wrong']), 'ERR_MILLRACE_INVALID_POLICY', /wrong: limit/)
    const listed = await store.list()
    assert.equal(
      listed.map(({ key, version }) => [key, version]),
      [
        ['later', undefined],
        ['plain', 0],
        ['wrong', undefined],
      ],
    )
    await store.put('wrong', MINUTE)
    assert.equal((await store.get('wrong'))?.policy, MINUTE)
    assert.ok((await store.put('plain', MINUTE, { ifVersion: 0 })).version > 0)
    assert.is(await store.delete('later'), true)
  })

  on('a closed store refuses by name, and closes twice', async (store) => {
    await store.put('a', MINUTE)
    await store.close()
    await store.close()
    await fails(() => store.get('a'), 'ERR_MILLRACE_CLOSED')
    await fails(() => store.put('a', MINUTE), 'ERR_MILLRACE_CLOSED')
    await fails(() => store.list(), 'ERR_MILLRACE_CLOSED')
    await fails(() => store.count!(), 'ERR_MILLRACE_CLOSED')
    assert.throws(() => store.watch(() => {}), /open configuration store/)
  })
}
