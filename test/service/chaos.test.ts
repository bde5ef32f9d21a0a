// Minutes of load while engines are killed and restarted, and their Redis stands still or loses what it has: how much is
// over the limit. `MILLRACE_CHAOS_MINUTES=10` is the whole of it.
// run: long, alone
import { setTimeout } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'
import { HOST } from '../redis/ports.js'
import type { Server } from '../redis/process.js'
import { startRedis } from '../redis/servers.js'
import { haproxyTest as test } from '../redis/skip.js'
import { sendOnce } from '../redis/wire.js'
import { type Balanced, type Fleet, fleet } from './balanced.js'
import { type Harm, judged, paced, tally } from './load.js'

const MINUTES = Number(process.env.MILLRACE_CHAOS_MINUTES ?? 1)
/** Of the cases with a bound above the limit. */
const SHORTER = MINUTES / 5
const [LIMIT, WINDOW_MS] = [20, 5_000]
const ENGINES = 3
const KEYS = Array.from({ length: 12 }, (_, i) => `user:${i}`)
/** Longer than a window, so that some windows are without harm. */
const PAUSE_MS = 8_000
/** Of a Redis that stands still: longer than the deadline of a decision, and shorter than a window. */
const STOP_MS = 2_000
/** In which the checks of the balancer find an engine. */
const SEEN_MS = 2_000

type Ask = (key: string) => Promise<Balanced>

/** Does harm after harm under load. */
async function chaos(ask: Ask, harms: readonly (() => Promise<void>)[], minutes: number) {
  const load = paced(ask, KEYS)
  const done: Harm[] = []
  const endMs = performance.now() + minutes * 60_000
  for (let i = 0; performance.now() < endMs; i++) {
    const fromMs = performance.now()
    await harms[i % harms.length]!()
    done.push({ fromMs, toMs: performance.now() })
    await setTimeout(PAUSE_MS)
  }
  const answers = await load.end()
  return {
    answers,
    minutes,
    harms: done,
    ...judged(answers, { limit: LIMIT, windowMs: WINDOW_MS, harms: done }),
  }
}

const report = (
  name: string,
  { answers, minutes, harms, over, most, mostInHarm }: Awaited<ReturnType<typeof chaos>>,
) =>
  console.log(
    `${name}: ${minutes} minutes, ${answers.length} requests, ${harms.length} harms, ${over} over the limit of ${LIMIT}; ` +
      `at most ${most} in a window without harm, ${mostInHarm} in one with; ${JSON.stringify(tally(answers))}`,
  )

/** An engine is ended by a signal, and started again. Each time another one. */
function restarts(engines: Fleet, signal: 'SIGTERM' | 'SIGKILL'): () => Promise<void> {
  let next = 0
  return async () => {
    const engine = next++ % ENGINES
    await engines.end(engine, signal)
    await setTimeout(SEEN_MS)
    await engines.begin(engine)
    await setTimeout(SEEN_MS)
  }
}

async function onRedis(
  name: string,
  minutes: number,
  harmsOf: (engines: Fleet, redis: Server) => readonly (() => Promise<void>)[],
) {
  const redis = await startRedis()
  const rule = ['--limit', `${LIMIT}/${WINDOW_MS}ms`, '--on-outage', 'closed', '--deadline', '200ms']
  const args = [...rule, '--counts', `redis://${HOST}:${redis.port}`, '--drain-delay', '1s']
  const engines = await fleet('haproxy', 'examples/haproxy/haproxy.cfg', args)
  try {
    const seen = await chaos((key) => engines.post('/v1/check', { key }), harmsOf(engines, redis), minutes)
    report(name, seen)
    const kinds = Object.keys(tally(seen.answers))
    for (const kind of kinds) assert.match(kind, /^(allowed|refused) by redis$|^50[234] |^lost$/)
    assert.ok(seen.most > LIMIT / 2, 'the limit was reached')
    return seen
  } finally {
    redis.resume()
    await engines.close()
    await redis.stop()
  }
}

test('counts in Redis: engines killed and restarted, Redis stopped: nothing is over the limit', async () => {
  const seen = await onRedis('redis', MINUTES, (engines, redis) => {
    const stop = async () => {
      await redis.pause()
      await setTimeout(STOP_MS)
      redis.resume()
    }
    return [stop, restarts(engines, 'SIGKILL'), stop, restarts(engines, 'SIGTERM')]
  })
  assert.equal([seen.over, seen.mostInHarm <= LIMIT], [0, true])
})

test('counts in Redis that it loses: at most the limit once more in a window with the loss', async () => {
  const seen = await onRedis('loss', SHORTER, (engines, redis) => [
    async () => sendOnce(redis.port, 'FLUSHALL'),
    restarts(engines, 'SIGKILL'),
    () => redis.restart(),
  ])
  assert.is(seen.over, 0)
  assert.ok(seen.mostInHarm <= 2 * LIMIT, `${seen.mostInHarm}`)
})

test('counts in the memory of engines: at most the limit once more for each change of the engine', async () => {
  const args = ['--limit', `${LIMIT}/${WINDOW_MS}ms`, '--key-header', '--drain-delay', '1s']
  const engines = await fleet('haproxy', 'examples/haproxy/by-key.cfg', args)
  try {
    const ask: Ask = (key) => engines.post('/v1/check', {}, { 'x-millrace-key': key })
    const seen = await chaos(ask, [restarts(engines, 'SIGKILL'), restarts(engines, 'SIGTERM')], SHORTER)
    report('memory', seen)
    for (const kind of Object.keys(tally(seen.answers)))
      assert.match(kind, /^(allowed|refused) by its engine$|^50[234] of|^lost$/)
    assert.is(seen.over, 0)
    assert.ok(seen.mostInHarm <= 3 * LIMIT, `${seen.mostInHarm}`)
    await poll(async () => (await ask('other')).status === 200, 'an answer')
  } finally {
    await engines.close()
  }
})

test.run()
