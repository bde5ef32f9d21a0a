import { existsSync } from 'node:fs'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ran } from '../streams.js'
import { newFolder, onStores } from './stores.js'

/** The version in the output of `set`. */
const versionIn = (out: string): string => /version (\d+)\n$/.exec(out)![1]!

onStores('set, get and delete a policy', async (on) => {
  const set = await on('set', 'user:42', '--limit', '100', '--window', '1m')
  assert.equal([set.code, set.err], [0, ''])
  assert.match(set.out, /^user:42: 100\/1m, version \d+\n$/)
  const got = await on('get', 'user:42')
  assert.equal(got, {
    code: 0,
    out: `user:42 has its own policy, version ${versionIn(set.out)}\n  100/1m\n`,
    err: '',
  })
  const { out } = await on('get', 'user:42', '--json')
  assert.equal(JSON.parse(out), {
    ...{ key: 'user:42', version: Number(versionIn(set.out)) },
    policy: { limit: 100, window: '1m' },
  })
  assert.equal(await on('delete', 'user:42'), { code: 0, out: 'deleted user:42\n', err: '' })
  assert.equal(await on('get', 'user:42'), {
    ...{ code: 1, out: '' },
    err: 'millrace: user:42 has no policy, nor have its prefixes\n',
  })
})

onStores('get shows the policy that holds, and whose it is', async (on) => {
  await on('set', 'user:*', '-r', '10/1s', '-r', '1000/1h')
  await on('set', 'user:vip:*', '-l', '500', '-w', '1m', '-g', '1s', '-e', 'smooth')
  const { out } = await on('get', 'user:7')
  assert.match(out, /^user:7 has the policy of user:\*, version \d+\n {2}10\/1s\n {2}1000\/1h\n$/)
  assert.match((await on('get', 'user:vip:1:2')).out, 'the policy of user:vip:*')
  assert.match((await on('get', 'user:*')).out, 'user:* has its own policy')
  assert.match((await on('get', `user:${'x'.repeat(600)}`)).out, 'the policy of user:*')
  assert.is(JSON.parse((await on('get', 'user:vip:1', '--json')).out).key, 'user:vip:*')
  const exact = await on('get', 'user:7', '--exact')
  assert.equal(exact, { code: 1, out: '', err: 'millrace: user:7 has no policy\n' })
})

onStores('set takes every option of a rule', async (on) => {
  const policyOf = async (...options: string[]) => {
    const { code, err } = await on('set', 'a', ...options)
    assert.equal([code, err], [0, ''], options.join(' '))
    return JSON.parse((await on('get', 'a', '--json')).out).policy
  }
  assert.equal(await policyOf('-l', '5', '-w', '1m', '-a', 'token-bucket', '-b', '9', '--name', 'calls'), {
    ...{ limit: 5, window: '1m', algorithm: 'token-bucket', burst: 9, name: 'calls' },
  })
  const monthly = ['--align', 'calendar', '--period', 'month', '--time-zone', 'Asia/Tokyo']
  assert.equal(await policyOf('-l', '5', '-a', 'fixed-window', ...monthly), {
    ...{ limit: 5, algorithm: 'fixed-window', align: 'calendar', period: 'month', timeZone: 'Asia/Tokyo' },
  })
  assert.equal(await policyOf('-l', '5', '-w', '1m', '-a', 'fixed-window', '--align', 'first', '--shadow'), {
    ...{ limit: 5, window: '1m', algorithm: 'fixed-window', align: 'first', shadow: true },
  })
  assert.equal(
    await policyOf('-l', '5', '-w', '1m', '-a', 'sliding-log', '--max-limit', '9', '--count-refused'),
    {
      ...{ limit: 5, window: '1m', algorithm: 'sliding-log', maxLimit: 9, countRefused: true },
    },
  )
  assert.equal(await policyOf('-l', '10GB', '-w', '1d', '--unit', '64KB'), {
    ...{ limit: '10GB', window: '1d', unit: '64KB' },
  })
  assert.equal(await policyOf('-l', '5', '-w', '1h', '-g', '1s', '--range-sum', 'fenwick'), {
    ...{ limit: 5, window: '1h', granularity: '1s', rangeSum: 'fenwick' },
  })
  assert.equal(await policyOf('-r', '10/1s', '-g', '100ms'), {
    limit: 10,
    window: '1s',
    granularity: '100ms',
  })
  assert.equal(await policyOf('-r', '10/1s', '-r', '100/1m', '-e', 'smooth'), {
    rules: [
      { name: '10/1s', limit: 10, window: '1s', edge: 'smooth' },
      { name: '100/1m', limit: 100, window: '1m', edge: 'smooth' },
    ],
  })
  assert.equal(await policyOf('-l', 'unlimited', '-w', '1m'), { limit: 'unlimited', window: '1m' })
  assert.equal(await policyOf('-l', 'Infinity', '-w', '1m'), { limit: 'unlimited', window: '1m' })
  assert.equal(await policyOf('-l', '0', '-w', '1m'), { limit: 0, window: '1m' })
  assert.equal(await policyOf('-l', 'unlimited', '-w', '1m', '--unit', '1KB'), {
    ...{ limit: 'unlimited', window: '1m', unit: '1KB' },
  })
  assert.equal(await policyOf('-r', 'unlimited/1m'), { limit: 'unlimited', window: '1m' })
  assert.equal(await policyOf('-r', '0/1m', '-r', 'unlimited/1h', '-g', '1s'), {
    rules: [
      { name: '0/1m', limit: 0, window: '1m', granularity: '1s' },
      { name: 'unlimited/1h', limit: 'unlimited', window: '1h', granularity: '1s' },
    ],
  })
  assert.match(
    (await on('get', 'a')).out,
    /\n {2}0\/1m, granularity 1s\n {2}unlimited\/1h, granularity 1s\n$/,
  )
  assert.equal(await policyOf('--json', '{"limit":"unlimited","window":"1m"}'), {
    ...{ limit: 'unlimited', window: '1m' },
  })
  assert.equal(await policyOf('--json', '{"limit":5,"window":"1m","edge":"smooth"}'), {
    ...{ limit: 5, window: '1m', edge: 'smooth' },
  })
  assert.equal(await policyOf('--json', '{"time_window_sec":1,"capacity":5}'), { limit: 5, window: 1000 })
})

onStores('--if-version changes only what has not been changed by others', async (on) => {
  const rule = ['-l', '5', '-w', '1m']
  const first = versionIn((await on('set', 'a', ...rule, '--if-version', 'none')).out)
  const again = await on('set', 'a', ...rule, '--if-version', 'none')
  assert.equal([again.code, again.out], [1, ''])
  assert.match(again.err, /^millrace: a: expected no policy of this key, got \d+\n$/)
  const second = versionIn((await on('set', 'a', ...rule, '--if-version', first)).out)
  for (const command of [
    ['set', 'a', ...rule],
    ['delete', 'a'],
  ]) {
    const { code, err } = await on(...command, '--if-version', first)
    assert.is(code, 1)
    assert.match(err, `a: expected version ${first} of this key's policy, got ${second}`)
  }
  assert.is((await on('delete', 'a', '--if-version', second)).code, 0)
})

onStores('delete takes several keys, and tells those that had no policy', async (on) => {
  for (const key of ['a', 'b', 'c']) await on('set', key, '-l', '5', '-w', '1m')
  const { code, out, err } = await on('delete', 'a', 'none', 'c')
  assert.equal([code, out], [1, 'deleted a\ndeleted c\n'])
  assert.is(err, 'none has no policy\nmillrace: 1 of 3 keys had no policy\n')
  assert.is((await on('get', 'b')).code, 0)
})

test('only set and import make a store', async () => {
  const path = `${newFolder()}/limits`
  for (const args of [['get', 'a'], ['delete', 'a'], ['list'], ['export'], ['validate']]) {
    for (const kind of ['lmdb', 'file']) {
      const { code, out, err } = await ran(['config', ...args, '-s', `${kind}:${path}`])
      assert.equal([code, out], [2, ''])
      assert.is(err, `millrace: --store: expected a store that exists, got "${kind}:${path}"\n`)
      assert.not(existsSync(path))
    }
  }
})

test.run()
