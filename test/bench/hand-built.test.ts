// The recipes of `npm run bench:redis -- --case hand-built`, in small scenarios.
import * as assert from 'uvu/assert'
import { RECIPES } from '../../bench/redis/hand-built/hand-built.js'
import { afterDeath, bursts, poisson, race, speed } from '../../bench/redis/hand-built/scenarios.js'
import { withRedis } from '../../bench/redis/server.js'
import { redisTest as test } from '../redis/skip.js'

const BOUND = { limit: 20, windowMs: 240 }

/** The most admitted by callers at once, and after a death, of each recipe on a server of its own. */
async function measured(): Promise<Map<string, { most: number; later: number }>> {
  const all = Object.entries(RECIPES).map(([name, recipe]) =>
    withRedis(async ({ port }) => {
      const later = afterDeath([recipe, port], BOUND)
      return [name, { most: await race([recipe, port], 8, BOUND.limit), later: await later }] as const
    }),
  )
  return new Map(await Promise.all(all))
}

test('at once, the limit is admitted; after a death before EXPIRE, nothing is for ever', async () => {
  const figures = await measured()
  assert.is(figures.size, 6)
  for (const name of ['Millrace', 'INCR and EXPIRE', 'WATCH and MULTI on a sorted set', 'two counters'])
    assert.is(figures.get(name)!.most, BOUND.limit, name)
  for (const [name, { most, later }] of figures) {
    assert.ok(most >= BOUND.limit, `${name}: ${most}`)
    const isLocked = name === 'INCR and EXPIRE' || name === 'read, then increment'
    // A count that expires between GET and SET stays for ever, on a slow machine often: it has no floor.
    if (name !== 'a lock around GET and SET')
      assert.ok(isLocked ? later === 0 : later > 0, `${name}: ${later}`)
  }
})

test('bursts and random traffic are played, and a decision of Millrace is one try', async () => {
  await withRedis(async ({ port }) => {
    const at = [RECIPES.Millrace!, port] as const
    // That no window is over the limit is shown in `test/redis/`. Here times are those of the callers, which do not tell
    // the moment of an admission if a call is longer than a granule.
    assert.ok((await bursts(at, BOUND)) > 0)
    assert.ok((await poisson(at, BOUND, 2, 400)) > 0)
    const { perSecond, tries } = await speed(at, 2, 20)
    assert.ok(perSecond > 0)
    assert.is(tries, 1)
  })
})

test.run()
