// run: full
// Limiters on a Cluster whose primaries die or stand still.
import * as assert from 'uvu/assert'
import { type Cluster, startCluster } from './cluster.js'
import { keysOfEach, limiterOn } from './cluster-limiter.js'
import { poll } from './poll.js'
import type { Server } from './process.js'
import { redisTest as test } from './skip.js'

type Sources = (string | undefined)[]
type Made = ReturnType<typeof limiterOn>
const sourcesOf = async (limiter: Made, keys: readonly string[]): Promise<Sources> =>
  Promise.all(keys.map(async (key) => (await limiter.check(key)).source))
const all = (sources: Sources, source: string) => sources.every((each) => each === source)

async function withCluster(args: readonly string[], act: (cluster: Cluster) => Promise<void>): Promise<void> {
  const cluster = await startCluster(args)
  try {
    await act(cluster)
  } finally {
    await cluster.stop()
  }
}

/** Without a failover, and with the slots of the other primaries in service. */
const NO_FAILOVER = ['--cluster-require-full-coverage', 'no', '--cluster-replica-no-failover', 'yes']

const FAULTS: Readonly<Record<string, (primary: Server) => Promise<void>>> = {
  dead: (primary) => primary.kill(),
  'that stands still': (primary) => primary.pause(),
}
const REPAIRS: Readonly<Record<string, (primary: Server) => unknown>> = {
  dead: (primary) => primary.restart(),
  'that stands still': (primary) => primary.resume(),
}

for (const [kind, harm] of Object.entries(FAULTS)) {
  test(`one primary of three ${kind}: the policy decides its keys, Redis those of the others`, () =>
    withCluster(NO_FAILOVER, async (cluster) => {
      const limiter = limiterOn(cluster, { limit: 1_000_000, deadline: 500 })
      const [[lost, ofLost], ...others] = [...(await keysOfEach(cluster, 20))] as [
        [Server, string[]],
        ...[Server, string[]][],
      ]
      const ofOthers = others.flatMap(([, keys]) => keys)
      await limiter.ready()
      assert.ok(all(await sourcesOf(limiter, [...ofLost, ...ofOthers]), 'redis'))
      await harm(lost)
      for (let round = 0; round < 20; round++) {
        const [missed, decided] = await Promise.all([
          sourcesOf(limiter, ofLost),
          sourcesOf(limiter, ofOthers),
        ])
        assert.ok(all(missed, 'outage'), `round ${round}: ${missed}`)
        assert.ok(all(decided, 'redis'), `round ${round}: ${decided}`)
      }
      const { outages } = await limiter.stats()
      assert.is(outages, 400)
      const error = await limiter.clearAll().catch((reason) => reason)
      assert.is(error.code, 'ERR_MILLRACE_OUTAGE', 'not all keys can be forgotten')
      const late = limiterOn(cluster, { deadline: 500 }) // a process that starts meanwhile
      await late.ready()
      assert.ok(all(await sourcesOf(late, ofOthers), 'redis'))
      await REPAIRS[kind]!(lost)
      for (const each of [limiter, late])
        await poll(async () => all(await sourcesOf(each, ofLost), 'redis'), 'decisions by the primary')
      await limiter.close()
      await late.close()
    }))
}

test('local: the share for keys of a dead primary, reported when it is back', () =>
  withCluster(NO_FAILOVER, async (cluster) => {
    const limiter = limiterOn(cluster, { limit: 8, onOutage: 'local', nodes: 2 })
    const [[lost, [key]], ...others] = [...(await keysOfEach(cluster, 3))] as [
      [Server, string[]],
      ...[Server, string[]][],
    ]
    const ofOthers = others.flatMap(([, keys]) => keys)
    await limiter.ready()
    await limiter.check(key!, 2)
    await lost.kill()
    const decided = []
    for (let i = 0; i < 4; i++) {
      decided.push(await limiter.check(key!))
      assert.ok(all(await sourcesOf(limiter, ofOthers), 'redis'))
    }
    assert.equal(
      decided.map(({ source, allowed }) => [source, allowed]),
      [true, true, false, false].map((allowed) => ['local', allowed]),
    )
    await lost.restart() // without its data
    await poll(async () => (await limiter.peek(key!)).source === 'redis', 'decisions by the primary')
    await poll(async () => (await limiter.usage(key!)) >= 2, 'the report')
    await poll(async () => (await limiter.usage(key!)) === 4, 'what was lost and what was reported')
    await limiter.close()
  }))

for (const [kind, harm] of Object.entries(FAULTS)) {
  test(`a primary ${kind}, under load: every call settles, and the promoted replica decides`, () =>
    withCluster([], async (cluster) => {
      const limiter = limiterOn(cluster, { limit: 1_000_000 })
      const [[lost, ofLost], ...others] = [...(await keysOfEach(cluster, 20))] as [
        [Server, string[]],
        ...[Server, string[]][],
      ]
      const keys = [...ofLost, ...others.flatMap(([, own]) => own)]
      const counts = new Map<string, number>()
      let admitted = 0
      let isOver = false
      const load = async (key: string) => {
        while (!isOver) {
          const { source, allowed } = await limiter.check(key)
          counts.set(source!, (counts.get(source!) ?? 0) + 1)
          if (allowed) admitted++
          await new Promise((resolve) => setTimeout(resolve, 5))
        }
      }
      await limiter.ready()
      const loads = keys.map(load)
      const [replica] = await cluster.replicasOf(lost)
      await harm(lost)
      await poll(() => cluster.isPrimary(replica!), 'the promotion of the replica')
      await poll(async () => all(await sourcesOf(limiter, ofLost), 'redis'), 'decisions by the replica')
      isOver = true
      await Promise.all(loads)
      let counted = 0
      for (const key of keys) {
        let units: number | undefined
        const isAnswered = async () => {
          units = await limiter.usage(key).catch(inOutage)
          return units !== undefined
        }
        await poll(isAnswered, 'the usage of each key')
        counted += units!
      }
      console.log(
        `a primary ${kind}: ${JSON.stringify([...counts])}, admitted ${admitted}, counted ${counted}`,
      )
      lost.resume()
      await limiter.close()
    }))
}

/** A busy machine may answer too late: the next try tells. */
function inOutage(error: { code?: string }): undefined {
  if (error.code !== 'ERR_MILLRACE_OUTAGE') throw error
}

test.run()
