// All descriptors of a request are decided together, all or nothing, or each by itself: in memory, in a file, on Redis.
import { test as any } from 'uvu'
import * as assert from 'uvu/assert'
import { isLeftOut } from '../../native/sides.js'
import { startRedis } from '../../redis/servers.js'
import { redisTest } from '../../redis/skip.js'
import { inFolder } from '../folder.js'
import { type Descriptor, requestOf, type Stage, withEnvoy } from './stage.js'

const CONFIG = `
domain: test
descriptors:
  - { key: user, rate_limit: { unit: day, requests_per_unit: 3 } }
  - { key: page, rate_limit: { unit: day, requests_per_unit: 100 } }
  - { key: hourly, rate_limit: { unit: hour, requests_per_unit: 50 } }
  - { key: soft, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
`
type Decide = 'together' | 'each'
type Run = (envoyDecide: Decide, act: (stage: Stage) => Promise<void>) => Promise<void>

const inMemory: Run = (envoyDecide, act) => withEnvoy(CONFIG, { envoyDecide }, act)
const inFile: Run = (envoyDecide, act) =>
  inFolder({}, (folder) =>
    withEnvoy(CONFIG, { envoyDecide, counts: `file:${folder}/counts`, maxKeys: 1_000 }, act),
  )
const onRedis: Run = async (envoyDecide, act) => {
  const server = await startRedis()
  try {
    const counts = `redis://127.0.0.1:${server.port}`
    await withEnvoy(CONFIG, { envoyDecide, counts, deadline: '1m' }, act)
  } finally {
    await server.stop()
  }
}

const hits = (...entries: string[]): Descriptor => ({ entries, hits_addend: { value: 0 } })

function tests(test: (name: string, act: () => Promise<void>) => void, place: string, run: Run): void {
  const left = async ({ ask }: Stage, ...entries: string[]) =>
    (await ask(hits(...entries))).statuses[0]!.limit_remaining

  test(`${place}: together, a request that one descriptor refuses charges none of the others`, () =>
    run('together', async (stage) => {
      const both: Descriptor[] = [
        ['page', 'x'],
        ['hourly', 'x'],
        ['user', 'alice'],
        ['page', 'y'],
      ]
      for (let i = 0; i < 3; i++) assert.is(await stage.codes(...both), 'ok ok ok ok ok')
      for (let i = 0; i < 3; i++) assert.is(await stage.codes(...both), 'over ok ok over ok')
      assert.equal([await left(stage, 'page', 'x'), await left(stage, 'page', 'y')], [97, 97])
      assert.is(await left(stage, 'hourly', 'x'), 47)
    }))

  test(`${place}: each, a request that one descriptor refuses charges the others`, () =>
    run('each', async (stage) => {
      const both: Descriptor[] = [
        ['page', 'x'],
        ['user', 'alice'],
        ['hourly', 'x'],
      ]
      for (let i = 0; i < 3; i++) assert.is(await stage.codes(...both), 'ok ok ok ok')
      for (let i = 0; i < 3; i++) assert.is(await stage.codes(...both), 'over ok over ok')
      assert.equal([await left(stage, 'page', 'x'), await left(stage, 'hourly', 'x')], [94, 44])
    }))

  test(`${place}: each, several hits that do not fit use up what is left; together, they charge nothing`, async () => {
    for (const [decide, expected] of [
      ['each', 0],
      ['together', 2],
    ] as const)
      await run(decide, async (stage) => {
        const ask = (value: number) => stage.ask({ entries: ['user', 'alice'], hits_addend: { value } })
        assert.is((await ask(1)).overall_code, 'OK')
        const refused = await ask(3)
        assert.equal([refused.overall_code, refused.statuses[0]!.limit_remaining], ['OVER_LIMIT', expected])
        assert.is(await left(stage, 'user', 'alice'), expected, decide)
      })
  })

  test(`${place}: together, equal descriptors are charged as one, for all of their hits`, () =>
    run('together', async (stage) => {
      assert.is(await stage.codes(['user', 'a'], ['user', 'a'], ['page', 'x']), 'ok ok ok ok')
      assert.is(await left(stage, 'user', 'a'), 1)
      assert.is(await stage.codes(['user', 'a'], ['user', 'a'], ['page', 'x']), 'over over over ok')
      assert.equal([await left(stage, 'user', 'a'), await left(stage, 'page', 'x')], [1, 99])
    }))

  test(`${place}: together, a limit of the request on a key with shadow_mode is not charged twice`, () =>
    run('together', async (stage) => {
      const brought: Descriptor = { entries: ['soft', 'x'], limit: { unit: 'DAY', requests_per_unit: 4 } }
      assert.is((await stage.ask(['soft', 'y'], ['page', 'x'])).overall_code, 'OK')
      const { statuses } = await stage.ask(brought, ['page', 'x'])
      assert.is(statuses[0]!.limit_remaining, 3)
      assert.is(await stage.codes(['soft', 'y'], ['page', 'x']), 'ok ok ok')
    }))

  test(`${place}: together, of many requests at once as many are admitted as fit, and the others charge nothing`, () =>
    run('together', async (stage) => {
      const request = requestOf('test', [
        ['page', 'x'],
        ['user', 'alice'],
        ['hourly', 'x'],
      ])
      const all = await Promise.all(Array.from({ length: 60 }, () => stage.client.ask(request)))
      assert.is(all.filter(({ overall_code }) => overall_code === 'OK').length, 3)
      assert.equal([await left(stage, 'page', 'x'), await left(stage, 'hourly', 'x')], [97, 47])
    }))
}

tests(any, 'memory', inMemory)
if (!isLeftOut()) tests(any, 'a file', inFile)
tests(redisTest, 'Redis', onRedis)
any.run()
