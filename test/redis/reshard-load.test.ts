// run: full
// The list of servers changes under load, by the clock of the machine, in two limiters at different times.
import { createRedisLimiter } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { type ShardServer, withServers } from './sharded-servers.js'
import { redisTest as test } from './skip.js'

const WINDOW_MS = 500
const LIMIT = 40
/** Of the test, and from one change to the next. */
const [WHOLE_MS, CHANGE_EACH_MS] = [12_000, 1_000]
const CALLERS = 16
const KEYS = ['a', 'b', 'c', 'd']

interface Admission {
  readonly key: string
  readonly sentMs: number
  readonly receivedMs: number
}

const named = ({ name, client }: ShardServer) => ({ name, client })

test('no window of the clock is over, and each key is admitted in each change', () =>
  withServers(4, async (servers) => {
    const lists = [
      [0, 1],
      [0, 1, 2],
      [1, 2, 3],
      [3, 0],
      [0, 1, 2, 3],
    ].map((list) => list.map((i) => named(servers[i]!)))
    const make = () =>
      createRedisLimiter({
        ...{ prefix: 'test', limit: LIMIT, window: WINDOW_MS, granularity: WINDOW_MS / 10, deadline: '10s' },
        ...{ shards: lists[0]!, changeWithin: '2s' },
      })
    const limiters = [make(), make()]
    await Promise.all(limiters.map((limiter) => limiter.ready()))
    const admissions: Admission[] = []
    const startMs = performance.now()
    const hasTime = () => performance.now() < startMs + WHOLE_MS
    const changing: Promise<void>[] = []
    let changes = 0

    async function call(caller: number): Promise<void> {
      const limiter = limiters[caller % 2]!
      for (let i = caller; hasTime(); i++) {
        const key = KEYS[i % KEYS.length]!
        const sentMs = performance.now()
        if ((await limiter.check(key)).allowed)
          admissions.push({ key, sentMs, receivedMs: performance.now() })
        if (caller === 0 && performance.now() > startMs + (changes + 1) * CHANGE_EACH_MS) {
          const list = lists[++changes % lists.length]!
          const [ahead, behind] = changes % 2 === 0 ? limiters : [...limiters].reverse()
          changing.push(ahead!.reshard(list).then(() => behind!.reshard(list)))
        }
      }
    }
    await Promise.all(Array.from({ length: CALLERS }, (_, caller) => call(caller)))
    await Promise.all(changing)
    for (const limiter of limiters) await limiter.close()

    assert.ok(changes >= 5, `${changes}`)
    for (const key of KEYS) {
      const own = admissions.filter((each) => each.key === key).sort((a, b) => a.sentMs - b.sentMs)
      assert.ok(own.length > LIMIT * 5, `${own.length} of '${key}'`)
      const fullest = Math.max(
        ...own.map(
          ({ sentMs }, i) => own.slice(i).filter(({ receivedMs }) => receivedMs < sentMs + WINDOW_MS).length,
        ),
      )
      assert.ok(fullest <= LIMIT, `${fullest} in a window of '${key}'`)
    }
  }))

test.run()
