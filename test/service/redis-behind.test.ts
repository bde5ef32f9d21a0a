// A failover of Redis, and a change of its shards, behind three engines behind HAProxy: callers see what `onOutage` says.
// run: long
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'
import { HOST } from '../redis/ports.js'
import type { Server } from '../redis/process.js'
import { SENTINEL_NAME, startSentinel } from '../redis/sentinel.js'
import { startRedis } from '../redis/servers.js'
import { haproxyTest as test } from '../redis/skip.js'
import { sendOnce } from '../redis/wire.js'
import { type Fleet, fleet } from './balanced.js'
import { type Answered, paced, tally } from './load.js'

const EXAMPLE = 'examples/haproxy/haproxy.cfg'
/** So that a server that stands still is an outage, and a busy machine is none. */
const DEADLINE = ['--deadline', '1s', '--drain-delay', '2s']

const HARMS: Readonly<Record<string, (primary: Server, sentinel: Server) => Promise<void>>> = {
  'is killed': (primary) => primary.kill(),
  'stands still': (primary) => primary.pause(),
  'is demoted': (_, { port }) => sendOnce(port, 'SENTINEL', 'FAILOVER', SENTINEL_NAME),
}

/** What callers see while a primary is replaced. */
const SEEN = {
  closed: /^(allowed|refused) by redis$|^503/,
  open: /^allowed by (redis|outage)$/,
  local: /^(allowed|refused) by (redis|local)$/,
}

async function duringFailover(
  onOutage: keyof typeof SEEN,
  harm: (primary: Server, sentinel: Server) => Promise<void>,
): Promise<readonly Answered[]> {
  const watched = await startSentinel()
  const counts = `redis+sentinel://${HOST}:${watched.sentinel.port}/${SENTINEL_NAME}`
  const outage = ['--on-outage', onOutage, ...(onOutage === 'local' ? ['--nodes', '3'] : [])]
  const args = ['--limit', '100000/1h', '--counts', counts, ...DEADLINE, ...outage]
  const engines = await fleet('haproxy', EXAMPLE, args)
  try {
    const load = paced((key) => engines.post('/v1/check', { key }), ['one'])
    await poll(() => load.answers.length > 50, 'load before the failover')
    await watched.failover((primary) => harm(primary, watched.sentinel))
    const isBack = async (url: string) => {
      const answer = await fetch(`${url}/v1/peek`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"key":"other"}',
      })
      return ((await answer.json()) as { source?: string }).source === 'redis'
    }
    for (const url of engines.urls) await poll(() => isBack(url), 'decisions by the promoted replica')
    await poll(
      async () => (await engines.post('/v1/check', { key: 'two' })).body?.source === 'redis',
      'the balancer',
    )
    const before = load.answers.length
    await poll(() => load.answers.length > before + 50, 'load after the failover')
    return await load.end()
  } finally {
    await engines.close()
    await watched.stop()
  }
}

const CASES = [
  ...Object.keys(HARMS).map((harm) => ['closed', harm] as const),
  ['open', 'is killed'],
  ['local', 'is killed'],
] as const

for (const [onOutage, harm] of CASES) {
  test(`a primary that ${harm}, with onOutage ${onOutage}: callers see that and nothing else`, async () => {
    const answers = await duringFailover(onOutage, HARMS[harm]!)
    const seen = tally(answers)
    console.log(`a primary ${harm}, ${onOutage}: ${JSON.stringify(seen)}`)
    for (const kind of Object.keys(seen)) assert.match(kind, SEEN[onOutage])
    assert.equal(Object.keys(tally(answers.slice(-20))), ['allowed by redis'])
  })
}

const LIMIT = 100
const KEYS = Array.from({ length: 30 }, (_, i) => `user:${i}`)

const CHANGES = {
  'a third server joins': [
    [0, 1],
    [0, 1, 2],
  ],
  'one server becomes two': [[0], [0, 1]],
  'a server leaves': [
    [0, 1, 2],
    [2, 0],
  ],
}

for (const [change, [first, second]] of Object.entries(CHANGES)) {
  test(`${change}: engines restart one by one under load, no request fails, and each key gets its limit`, async () => {
    const servers = await Promise.all(Array.from({ length: 3 }, () => startRedis()))
    const listOf = (list: readonly number[]) =>
      `redis://${list.map((i) => `${HOST}:${servers[i]!.port}`).join(',')}`
    const [before, now] = [listOf(first!), listOf(second!)]
    const common = ['--limit', `${LIMIT}/1h`, '--deadline', '3s', '--drain-delay', '2s']
    const engines = await fleet('haproxy', EXAMPLE, [...common, '--counts', before])
    try {
      const load = paced((key) => engines.post('/v1/check', { key }), KEYS)
      const more = async () => {
        const { length } = load.answers
        await poll(() => load.answers.length > length + KEYS.length, 'load')
      }
      await more()
      for (const [i] of engines.urls.entries()) {
        await engines.end(i, 'SIGTERM')
        await engines.begin(i, [...common, '--counts', now, '--counts-before', before])
        await more()
      }
      const answers = await load.end()
      for (const kind of Object.keys(tally(answers))) assert.match(kind, / by redis$/)
      const admitted = new Map(KEYS.map((key) => [key, 0]))
      for (const { key, allowed } of answers) if (allowed) admitted.set(key, admitted.get(key)! + 1)
      await Promise.all(KEYS.map((key) => exhaust(engines, key, admitted)))
      assert.equal(
        [...admitted.values()],
        KEYS.map(() => LIMIT),
      )
      console.log(`${change}: ${answers.length} requests, 0 failed, ${LIMIT} of each key`)
    } finally {
      await engines.close()
      await Promise.all(servers.map((server) => server.stop()))
    }
  })
}

async function exhaust({ post }: Fleet, key: string, admitted: Map<string, number>): Promise<void> {
  for (;;) {
    const { status, body } = await post('/v1/check', { key })
    assert.is(status, 200)
    if (!body.allowed) return
    admitted.set(key, admitted.get(key)! + 1)
  }
}

test('a shard that is killed: its keys are what onOutage says, all others are decided, and the engines stay ready', async () => {
  const servers = await Promise.all([startRedis(), startRedis()])
  const counts = `redis://${servers.map(({ port }) => `${HOST}:${port}`).join(',')}`
  const engines = await fleet('haproxy', EXAMPLE, ['--limit', '100000/1h', '--counts', counts, ...DEADLINE])
  try {
    const sourceOf = async (key: string) => {
      const { status, body } = await engines.post('/v1/check', { key })
      return body?.source ?? `${status} ${body?.code}`
    }
    for (const key of KEYS) assert.is(await sourceOf(key), 'redis')
    await servers[1]!.kill()
    const found = new Map<string, string>()
    for (const key of KEYS) found.set(key, await sourceOf(key))
    const kinds = [...found.values()]
    assert.equal([...new Set(kinds)].sort(), ['503 ERR_MILLRACE_UNDECIDED', 'redis'])
    for (const url of engines.urls) assert.is((await fetch(`${url}/readyz`)).status, 200)
    for (const [key, kind] of found) assert.is(await sourceOf(key), kind, key)
    console.log(
      `a shard killed: ${kinds.filter((kind) => kind === 'redis').length} of ${KEYS.length} keys decided`,
    )
    await servers[0]!.kill()
    const isOut = async (url: string) => (await fetch(`${url}/readyz`)).status === 503
    for (const url of engines.urls) await poll(() => isOut(url), 'an engine that is not ready')
  } finally {
    await engines.close()
    await Promise.all(servers.map((server) => server.stop()))
  }
})

test.run()
