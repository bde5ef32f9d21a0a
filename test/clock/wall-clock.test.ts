// run: also-full
// A real node:http server whose clocks are set while it serves, forward and back by a minute and by an hour.
import { test as always } from 'uvu'
import * as assert from 'uvu/assert'
import { sized } from '../size.js'
import { fakeTime, isLeftOut } from './faketime.js'
import { type LimiterName, type Reply, RULE, WallClockServer } from './wall-clock.js'

const test = isLeftOut() ? always.skip : always
const MINUTE = 60
const HOUR = 3_600
const YEAR = 365 * 24 * HOUR
/** A window and a granule, in seconds. */
const OVER = (RULE.windowMs + RULE.windowMs / RULE.parts) / 1_000
const { limit } = RULE

/** Starts a server that uses the machine's clocks until `clocks` of them are set. */
async function withServer(clocks: 'wall' | 'both', use: (server: WallClockServer) => Promise<void>) {
  const time = fakeTime(clocks)
  try {
    const server = await WallClockServer.start(time)
    try {
      await use(server)
    } finally {
      await server.stop()
    }
  } finally {
    time.remove()
  }
}

function admittedIn(replies: Reply[]): number {
  return replies.filter(({ allowed }) => allowed).length
}

test('with the default clock, setting the wall clock changes nothing: exactly the limit is admitted', () =>
  withServer('wall', async (server) => {
    const readings: number[] = []
    let total = 0
    for (const [step, offset] of [MINUTE, 0, -MINUTE, 0, HOUR, 0, -HOUR, 0, YEAR, 0].entries()) {
      const known = await server.volley('default', 'known', offset)
      const fresh = await server.volley('default', `fresh-${step}`)
      total += admittedIn(known)
      assert.is(total, limit, `the wall clock set to ${offset} s`)
      assert.is(admittedIn(fresh), limit, `a new key with the wall clock at ${offset} s`)
      assert.ok(fresh.at(-1)!.retryAfterMs <= OVER * 1_000)
      readings.push(...[...known, ...fresh].map(({ readingMs }) => readingMs))
    }
    assert.equal(
      readings,
      readings.toSorted((a, b) => a - b),
      'the readings do not step back',
    )
    assert.ok(readings.at(-1)! - readings[0]! < RULE.windowMs, 'the readings do not jump forward')
  }))

const CLOCKS: [clocks: 'wall' | 'both', limiter: LimiterName, what: string][] = [
  ['wall', 'wall', 'by Date.now, the wall clock set'],
  ['both', 'wall', 'by Date.now, all clocks moved'],
  ['both', 'default', 'by the default clock, on a machine that moves the monotonic clock too'],
]
for (const [clocks, limiter, what] of sized({ quick: CLOCKS.slice(0, 1), full: CLOCKS })) {
  test(`${what}: a clock set an hour ahead starts a new window, a clock set back frees no quota and locks no key out`, () =>
    withServer(clocks, async (server) => {
      /** Sets the clock, and returns the units admitted to 'known' while it is set and afterwards. */
      const set = async (offset: number) =>
        admittedIn(await server.volley(limiter, 'known', offset)) +
        admittedIn(await server.volley(limiter, 'known'))
      assert.is(await set(0), limit)
      assert.is(await set(MINUTE), 0, 'one of ten minutes has passed')
      assert.is(await set(0), 0, 'back by a minute')
      assert.is(await set(HOUR), limit, 'an hour has passed')
      assert.is(await set(0), 0, 'back by an hour')
      const { retryAfterMs } = (await server.volley(limiter, 'known')).at(-1)!
      assert.ok(retryAfterMs > OVER * 1_000 && retryAfterMs <= (HOUR + OVER) * 1_000, `${retryAfterMs} ms`)
      assert.is(admittedIn(await server.volley(limiter, 'fresh')), limit, 'a new key')
      assert.is(await set(HOUR), 0, 'forward again to the earlier time')
      assert.is(await set(HOUR - MINUTE), 0)
      assert.is(await set(HOUR + OVER), limit, 'a window and a granule after the earlier time')
      assert.is(admittedIn(await server.volley(limiter, 'fresh')), limit)
    }))
}

always.run()
