// A limiter in use reads no file. So it goes on in a process that has no file descriptor left.
import { spawnSync } from 'node:child_process'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ALGORITHMS } from '#millrace/core/algorithms.js'
import { root } from './root.js'

/** Creates limiters of all kinds, takes all descriptors, and then uses every method of each. */
const SCRIPT = `
  import { openSync } from 'node:fs'
  import { createRequire } from 'node:module'
  import { subscribe } from 'node:diagnostics_channel'
  const require = createRequire(process.cwd() + '/package.json')
  const { createLimiter, group, attachLimiter, setEventOptions } = require('millrace')
  const { memoryConfig } = require('millrace/config/memory')
  const { createBackendLimiter } = require('millrace/backend')
  const { ipKey } = require('millrace/http')

  const ALGORITHMS = JSON.parse(process.argv[1])
  const config = memoryConfig()
  for (const [i, algorithm] of ALGORITHMS.entries()) {
    await config.put('key-' + i, { algorithm, limit: 5, window: '3m' })
    await config.put('unit-' + i, { algorithm, limit: 500, window: '4m', unit: 100 })
  }
  await config.put('rules', { rules: [{ limit: 5, window: '5s', name: 'a' }, { limit: 9, window: '7m', name: 'b' }] })
  const stored = new Map()
  const values = {
    read: async (keys) => keys.map((key) => stored.get(key)),
    swap: async (key, before, after) => (stored.set(key, after), true),
  }
  const limiters = {
    config: createLimiter({ config, default: { limit: 5, window: '1m' } }),
    backend: createBackendLimiter({ values, source: 'own', prefix: 'p', limit: 5, window: '1m' }),
    pool: createLimiter({ limit: 5, window: '1m', engine: 'pool', pool: { maxThreads: 1, minThreads: 1 } }),
    poolOfRules: createLimiter({
      rules: [{ limit: 5, window: '1s', name: 'a' }, { limit: 9, window: '1m', name: 'b' }],
      engine: 'pool',
      pool: { maxThreads: 1, minThreads: 1 },
    }),
    granular: createLimiter({ limit: 5, window: '1m', granularity: 100 }),
  }
  for (const algorithm of ALGORITHMS) {
    limiters[algorithm] = createLimiter({ algorithm, limit: 5, window: '1m' })
    limiters[algorithm + ' in units'] = createLimiter({ algorithm, limit: 500, window: '1m', unit: 100 })
    limiters[algorithm + ' of rules'] = createLimiter({
      rules: [{ algorithm, limit: 5, window: '1s', name: 'a' }, { algorithm, limit: 9, window: '1m', name: 'b' }],
    })
  }
  const inline = ALGORITHMS.map((algorithm) => limiters[algorithm])
  await limiters.pool.check('first')
  await limiters.poolOfRules.check('first')
  const files = () => Object.keys(require.cache)

  const before = new Set(files())
  const taken = []
  try {
    for (;;) taken.push(openSync('/dev/null'))
  } catch (error) {
    if (error.code !== 'EMFILE') throw error
  }
  const failed = []
  let done = 0
  const attempt = async (name, act) => {
    try {
      await act()
      done++
    } catch (error) {
      const isExpected = /^ERR_MILLRACE_/.test(error.code) || error.name === 'TimeoutError'
      if (!isExpected || /EMFILE/.test(error.message)) failed.push(name + ': ' + error)
    }
  }
  subscribe('millrace:limited', () => {})
  await attempt('events', () => setEventOptions({ keyInEvents: 'hash', secret: '0123456789abcdef' }))
  await attempt('ipKey', () => ipKey()({ headers: {}, socket: { remoteAddress: '2001:db8::1' } }))
  const KEYS = ['other', 'rules', ...ALGORITHMS.flatMap((_, i) => ['key-' + i, 'unit-' + i])]
  for (const [name, limiter] of Object.entries(limiters)) {
    for (const key of name === 'config' ? [...KEYS, ...KEYS] : ['key']) {
      const on = (method, act) => attempt(name + ' ' + key + ' ' + method, act)
      for (let i = 0; i < 7; i++) await on('check', () => limiter.check(key))
      await new Promise((resolve) => setImmediate(resolve)) // policies arrive
      await on('peek', () => limiter.peek(key))
      await on('checkMany', () => limiter.checkMany([key, 'more'], 1, { remaining: true }))
      await on('refund a decision', async () => limiter.refund(await limiter.check('new')))
      await on('refund', () => limiter.refund(key, 1))
      await on('penalize', () => limiter.penalize(key, 2))
      await on('block', () => limiter.block(key, '1s'))
      await on('unblock', () => limiter.unblock(key))
      await on('usage', () => limiter.usage(key, { window: '30s' }))
      await on('reserve', async () => (await limiter.reserve('reserved', 2)).commit(1))
      await on('wait', () => limiter.wait('waited', { signal: AbortSignal.timeout(20) }))
      await on('wait in vain', () => limiter.wait(key, { cost: 5, signal: AbortSignal.timeout(20) }))
      await on('pack', () => limiter.checkMany(limiter.pack(['a', 'b'])))
      await on('handle', () => limiter.check(limiter.handle('a')))
      await on('update', () => limiter.update(limiter.rules[0].name, { limit: 6 }))
      await on('window', () => limiter.update(limiter.rules[0].name, { window: '50s' }))
      await on('check after', () => limiter.check(key))
      await on('share', () => attachLimiter(limiter.share()).check(key))
      await on('clear', () => limiter.clear(key))
      await on('stats', () => limiter.stats())
    }
  }
  await attempt('group', () => group({ a: inline[0], b: inline[1] }).check({ a: 'x', b: 'y' }))
  await attempt('another limiter', () =>
    createLimiter({ rules: [{ limit: 1, window: '1s', name: 'a' }, { limit: 2, window: '1m', name: 'b' }] }).check('key'),
  )
  const loaded = files().filter((file) => !before.has(file))
  process.stdout.write(JSON.stringify({ failed, loaded, done, taken: taken.length > 0 }))
  process.exit(0)
`

if (process.platform === 'win32') test.skip('Windows has no ulimit', () => {})
else
  test('every part of a limiter works in a process without a file descriptor, and loads nothing', () => {
    const node = `ulimit -n 200; exec "$0" --input-type=module -e "$1" "$2"`
    const algorithms = JSON.stringify(ALGORITHMS)
    const { stdout, stderr } = spawnSync('sh', ['-c', node, process.execPath, SCRIPT, algorithms], {
      cwd: root,
      encoding: 'utf8',
    })
    const { failed, loaded, done, taken } = JSON.parse(stdout || JSON.stringify({ failed: [stderr] }))
    assert.equal({ failed, loaded, taken }, { failed: [], loaded: [], taken: true })
    assert.ok(done > 500, `${done} calls`)
  })

test.run()
