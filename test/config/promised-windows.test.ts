// `put` promises a window to a policy while it is written. A write that fails takes the promise back.
// run: modules

import type { Duration, Policy } from 'millrace'
import { shardedConfig } from 'millrace/config/sharded'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { limiterWith } from './configured.js'
import { codeOf, namesOf, shardsOf } from './named-shards.js'
import { TextStore } from './text-store.js'

const policyOf = (window: Duration): Policy => ({ limit: 5, window })

/** Whether a limiter lets a policy of this window pass. Asks by a write that fails, which changes nothing. */
const hasRoom = async (config: ReturnType<typeof limiterWith>['config'], window: Duration) =>
  (await codeOf(config.put('other', policyOf(window), { ifVersion: 99 }))) === 'ERR_MILLRACE_CONFIG_CONFLICT'

test('a put that fails uses up no window', async () => {
  const { config, limiter } = limiterWith({}, { maxWindows: 2 })
  for (const window of ['1h', '2h', '3h'] as const)
    assert.is(
      await codeOf(config.put('a', policyOf(window), { ifVersion: 99 })),
      'ERR_MILLRACE_CONFIG_CONFLICT',
    )
  await config.put('b', policyOf('4h'))
  assert.is(await hasRoom(config, '1h'), false, 'the policy that is stored has its window')
  assert.is(limiter.check('b').limit, 5)
  assert.is(limiter.stats().config?.windows, 2)
  await limiter.close()
})

test('a put that fails takes back its own promise only, not that of another one', async () => {
  const { config, limiter } = limiterWith({}, { maxWindows: 2 })
  const both = [
    config.put('a', policyOf('1h'), { ifVersion: 99 }),
    config.put('b', policyOf('1h')),
    config.put('c', policyOf('1h'), { ifVersion: 99 }),
  ]
  assert.equal(
    (await Promise.allSettled(both)).map(({ status }) => status),
    ['rejected', 'fulfilled', 'rejected'],
  )
  assert.is(await codeOf(config.put('d', policyOf('2h'))), 'ERR_MILLRACE_POLICY_TOO_LARGE')
  assert.is(limiter.check('b').limit, 5)
  await limiter.close()
})

test('a window is taken while the write is under way', async () => {
  const config = new TextStore()
  const { limiter } = limiterWith({}, { config, maxWindows: 2 })
  config.onReplace = async (key) => {
    if (key !== 'a') return
    assert.is(await codeOf(config.put('b', policyOf('2h'))), 'ERR_MILLRACE_POLICY_TOO_LARGE')
    config.isDown = true
  }
  assert.is(await codeOf(config.put('a', policyOf('1h'))), 'ERR_MILLRACE_CONFIG_STORE')
  config.isDown = false
  await config.put('b', policyOf('2h'))
  await limiter.close()
})

test('one limiter has no window for a policy: it takes none of another limiter', async () => {
  const { config, limiter } = limiterWith({}, { maxWindows: 2 })
  const full = limiterWith({}, { config, maxWindows: 1 })
  assert.is(await codeOf(config.put('a', policyOf('1h'))), 'ERR_MILLRACE_POLICY_TOO_LARGE')
  await full.limiter.close()
  await config.put('a', policyOf('2h'))
  await limiter.close()
})

test('of many policies, those that were stored before the failure keep their windows, and no others', async () => {
  const config = new TextStore()
  const { limiter } = limiterWith({}, { config, maxWindows: 4 })
  config.onReplace = (key) => {
    if (key === 'b') throw new Error('the disk is full')
  }
  const windows = { a: '1h', b: '2h', c: '3h' } as const
  const entries = Object.entries(windows).map(([key, window]) => ({ key, policy: policyOf(window) }))
  assert.is(await codeOf(config.putMany(entries)), 'ERR_MILLRACE_CONFIG_STORE')
  assert.equal([...config.texts.keys()], ['a', 'c'])
  await config.put('d', policyOf('4h'))
  assert.is(await codeOf(config.put('e', policyOf('5h'))), 'ERR_MILLRACE_POLICY_TOO_LARGE')
  await limiter.close()
})

test('of many policies, one that is refused or replaced takes no window', async () => {
  const config = new TextStore()
  const { limiter } = limiterWith({}, { config, maxWindows: 2 })
  const [one, two] = (['1h', '2h'] as const).map((window) => ({ key: 'a', policy: policyOf(window) }))
  assert.is(await codeOf(config.putMany([one!, { ...two!, key: 'b' }])), 'ERR_MILLRACE_POLICY_TOO_LARGE')
  await config.putMany([one!, two!])
  assert.is(await codeOf(config.putMany([one!])), 'ERR_MILLRACE_POLICY_TOO_LARGE')
  await limiter.close()
})

test('shards: a policy that only the first one has keeps its window', async () => {
  const shards = shardsOf('a', 'b')
  const config = shardedConfig(shards, { replicas: 2 })
  const { limiter } = limiterWith({}, { config, maxWindows: 2 })
  const [first, second] = namesOf(shards).ranked('x', 2)
  shards[first!]!.isDown = true
  assert.is(await codeOf(config.put('x', policyOf('1h'))), 'ERR_MILLRACE_CONFIG_STORE')
  shards[first!]!.isDown = false
  shards[second!]!.isDown = true
  assert.is(await codeOf(config.put('x', policyOf('2h'))), 'ERR_MILLRACE_CONFIG_STORE')
  shards[second!]!.isDown = false
  assert.is(await codeOf(config.put('y', policyOf('3h'))), 'ERR_MILLRACE_POLICY_TOO_LARGE')
  await limiter.close()
})

test.run()
