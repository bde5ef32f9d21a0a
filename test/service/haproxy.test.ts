// examples/haproxy/haproxy.cfg with Debian's HAProxy: three engines with counts in Redis are one limit.
// run: long
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'
import { startRedis } from '../redis/servers.js'
import { haproxyTest as test } from '../redis/skip.js'
import { answeredBy, type Balanced, type Fleet, fleet } from './balanced.js'

const CALLERS = 16
/** HAProxy closes the connection of a caller whose engine has broken one that was in use before. */
const LOST = 0

async function withEngines(
  limit: number,
  act: (engines: Fleet, redis: Awaited<ReturnType<typeof startRedis>>) => Promise<void>,
) {
  const redis = await startRedis()
  const counts = `redis://127.0.0.1:${redis.port}`
  const options = ['--limit', `${limit}/1h`, '--counts', counts, '--deadline', '3s', '--drain-delay', '2s']
  const engines = await fleet('haproxy', 'examples/haproxy/haproxy.cfg', options)
  try {
    await act(engines, redis)
  } finally {
    await engines.close()
    await redis.stop()
  }
}

/** Callers that ask, each again after its answer, until `isDone` says so. */
async function load(
  { post }: Fleet,
  isDone: (answers: readonly Balanced[]) => boolean,
): Promise<readonly Balanced[]> {
  const answers: Balanced[] = []
  const caller = async () => {
    while (!isDone(answers)) answers.push(await post('/v1/check', { key: 'one' }))
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
  return answers
}

const admitted = (answers: readonly Balanced[]) => answers.filter(({ body }) => body?.allowed).length
/** Answers that are no decision, by status. */
const failed = (answers: readonly Balanced[]) =>
  answers.filter(({ status }) => status !== 200).map(({ status }) => status)

test('one limit over three engines under load, and each of them takes its share', () =>
  withEngines(500, async (engines) => {
    const answers = await load(engines, ({ length }) => length >= 1_500)
    assert.equal(failed(answers), [])
    assert.is(admitted(answers), 500)
    for (const url of engines.urls) assert.ok((await answeredBy(url)) > answers.length / 4)
  }))

test('engines are restarted one after the other under load: no request fails, and the limit stays one', () =>
  withEngines(1_000, async (engines) => {
    let isDone = false
    const asked = load(engines, () => isDone)
    for (const [i, url] of engines.urls.entries()) {
      await engines.end(i, 'SIGTERM')
      await engines.begin(i)
      await poll(async () => (await answeredBy(url)) > 0, `a request to engine ${i + 1} after its restart`)
    }
    isDone = true
    const answers = await asked
    console.log(`${answers.length} requests during three restarts, ${failed(answers).length} failed`)
    assert.equal(failed(answers), [])
    assert.ok(answers.length > 1_000)
    assert.is(admitted(answers), 1_000)
  }))

test('an engine that is killed under load: what it had in flight is lost or a 502, never a 429, and no more is admitted', () =>
  withEngines(300, async (engines) => {
    let isDone = false
    const asked = load(engines, (answers) => isDone && answers.length > 2_000)
    await poll(async () => (await answeredBy(engines.urls[0]!)) > 20, 'load on the first engine')
    await engines.end(0, 'SIGKILL')
    isDone = true
    const answers = await asked
    console.log(`${answers.length} requests, lost by a kill: ${failed(answers)}`)
    assert.ok(failed(answers).length <= CALLERS)
    assert.ok(failed(answers).every((status) => [LOST, 502, 503].includes(status)))
    assert.ok(admitted(answers) <= 300 && admitted(answers) >= 300 - CALLERS)
  }))

test('while Redis stands still no engine is ready: HAProxy answers 503, and goes on by itself', () =>
  withEngines(100, async ({ balancer, post }, redis) => {
    const ready = async () => (await fetch(`http://127.0.0.1:${balancer.port}/readyz`)).status
    await redis.pause()
    await poll(async () => (await ready()) === 503, 'no engine that is ready')
    assert.is((await post('/v1/check', { key: 'a' })).status, 503)
    redis.resume()
    await poll(async () => (await ready()) === 200, 'an engine that is ready')
    assert.is((await post('/v1/check', { key: 'a' })).status, 200)
  }))

test.run()
