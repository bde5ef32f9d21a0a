// What callers see of each fault, counted: the table "Faults" of `docs/service.md`.
// run: long
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { userInfo } from 'node:os'
import { test as any } from 'uvu'
import * as assert from 'uvu/assert'
import { isLeftOut } from '../native/sides.js'
import { poll } from '../redis/poll.js'
import { HOST } from '../redis/ports.js'
import { startMemcached, startRedis } from '../redis/servers.js'
import { redisTest as test } from '../redis/skip.js'
import type { Balanced } from './balanced.js'
import { type Command, command } from './command-line.js'
import { temporaryFolder } from './folder.js'
import { kindOf, paced, tally } from './load.js'

const LIMIT = 200

const ask = async (url: string, body: object, path = '/v1/check', token = ''): Promise<Balanced> => {
  const authorization = token === '' ? {} : { authorization: `Bearer ${token}` }
  const answer = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...authorization },
    body: JSON.stringify(body),
  })
  return { status: answer.status, body: await answer.json() }
}

const show = (name: string, seen: Readonly<Record<string, number>>) =>
  console.log(`${name}: ${JSON.stringify(seen)}`)

/** Runs an engine, and ends it. */
async function withEngine(args: readonly string[], act: (engine: Command) => Promise<void>, env = {}) {
  const engine = await command(['--port', '0', ...args], env)
  assert.is(engine.code, null, engine.stderr)
  try {
    await act(engine)
  } finally {
    assert.is(await engine.end(), 0)
  }
}

/** A server that answers every command with a line of another protocol. */
async function wrongServer(port: number, line: string) {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => socket.write(line))
  })
  server.listen(port, HOST)
  await once(server, 'listening')
  return { close: () => new Promise((resolve) => server.close(resolve)) }
}

type Redis = Awaited<ReturnType<typeof startRedis>>
interface Fault {
  readonly harm: (redis: Redis) => Promise<() => Promise<unknown>>
  /** Whether Redis has the counts of before when it is back. */
  readonly keeps: boolean
}

/** Each returns what ends the fault. */
const OF_REDIS: Readonly<Record<string, Fault>> = {
  away: {
    async harm(redis) {
      await redis.kill()
      return () => redis.restart()
    },
    keeps: false,
  },
  slow: {
    async harm(redis) {
      await redis.pause()
      return async () => redis.resume()
    },
    keeps: true,
  },
  wrong: {
    async harm(redis) {
      await redis.kill()
      const wrong = await wrongServer(redis.port, 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')
      return async () => {
        await wrong.close()
        await redis.restart()
      }
    },
    keeps: false,
  },
}
const SEEN = {
  closed: { before: 'allowed by redis', during: /^503 ERR_MILLRACE_UNDECIDED$/ },
  open: { before: 'allowed by redis', during: /^allowed by outage$/ },
  local: { before: 'allowed by redis', during: /^(allowed|refused) by local$/ },
} as const

for (const [fault, { harm, keeps }] of Object.entries(OF_REDIS)) {
  for (const [onOutage, { before, during }] of Object.entries(SEEN)) {
    test(`Redis is ${fault}, onOutage ${onOutage}: callers see that until Redis answers`, async () => {
      const redis = await startRedis()
      const counts = ['--counts', `redis://${HOST}:${redis.port}`, '--deadline', '200ms']
      const outage = ['--on-outage', onOutage, ...(onOutage === 'local' ? ['--nodes', '2'] : [])]
      await withEngine(['--limit', `${LIMIT}/1h`, ...counts, ...outage], async ({ url }) => {
        const load = paced((key) => ask(url, { key }), ['one'])
        await poll(() => load.answers.some(({ kind }) => kind === before), 'a decision of Redis')
        const end = await harm(redis)
        await poll(
          () => load.answers.filter(({ kind }) => during.test(kind)).length > 30,
          'answers during the fault',
        )
        await end()
        await poll(() => /redis$/.test(load.answers.at(-1)!.kind), 'decisions of Redis')
        const answers = await load.end()
        const seen = tally(answers)
        show(`${fault}, ${onOutage}`, seen)
        for (const kind of Object.keys(seen)) assert.ok(/ by redis$/.test(kind) || during.test(kind), kind)
        const byRedis = answers.filter(({ allowed, kind }) => allowed && kind === before).length
        assert.ok(byRedis <= (keeps ? LIMIT : 2 * LIMIT))
        if (keeps && onOutage === 'closed') {
          let admitted = byRedis
          while ((await ask(url, { key: 'one' })).body.allowed) admitted++
          assert.ok(admitted <= LIMIT, `${admitted}`)
        }
      })
      await redis.stop()
    })
  }
}

test('a store that is away, slow or wrong at the start: one line and exit code 4', async () => {
  const wrong = await wrongServer(0, '')
  await wrong.close()
  const redis = await startRedis()
  const memcached = await startMemcached()
  await memcached.stop()
  const servers = {
    'away: Redis': { counts: 'redis://127.0.0.1:1' },
    'away: Memcached': { counts: `memcached://${HOST}:${memcached.port}` },
    'wrong: Redis': {
      counts: `redis://${HOST}:${memcached.port}`,
      answer: 'HTTP/1.1 400 Bad Request\r\n\r\n',
    },
    'slow: Redis': { counts: `redis://${HOST}:${redis.port}` },
  }
  await redis.pause()
  for (const [name, { counts, ...more }] of Object.entries(servers)) {
    const server = 'answer' in more ? await wrongServer(memcached.port, more.answer) : undefined
    const { code, stderr } = await command(['--limit', '1/1m', '--port', '0', '--counts', counts])
    assert.is(code, 4, `${name}: ${stderr}`)
    assert.match(stderr, /^millrace: serve: [^\n]+\n$/, name)
    void server?.close()
  }
  redis.resume()
  await redis.stop()
})

const fakeTime = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1'
const withClocks = existsSync(fakeTime) || process.env.MILLRACE_EVERY_TEST ? test : test.skip
/** The clock of the wall of an engine; time goes on as fast. */
const clockOf = (offset: string) => ({
  LD_PRELOAD: fakeTime,
  FAKETIME: offset,
  DONT_FAKE_MONOTONIC: '1',
  FAKETIME_DONT_FAKE_MONOTONIC: '1',
})
const CLOCKS = ['-1h', '+0', '+1h']
const KEY = 'a signing key of 32 characters, or more'

async function withSeveralClocks(
  counts: string,
  act: (urls: readonly string[]) => Promise<void>,
): Promise<void> {
  const args = ['--limit', `${LIMIT}/1h`, '--counts', counts, '--deadline', '3s', '--port', '0']
  const engines = await Promise.all(
    CLOCKS.map((offset) =>
      command(args, { ...clockOf(offset), MILLRACE_SERVE_SIGNING_KEYS: JSON.stringify([KEY]) }),
    ),
  )
  try {
    for (const { url, stderr } of engines) assert.not.equal(url, '', stderr)
    await act(engines.map(({ url }) => url))
  } finally {
    await Promise.all(engines.map(({ end }) => end()))
  }
}

/** What a key gets from engines in turns until each refuses. */
async function admittedInTurns(
  urls: readonly string[],
  key: string,
): Promise<Readonly<Record<string, number>>> {
  const seen: Record<string, number> = {}
  for (let refused = 0, i = 0; refused < urls.length; i++) {
    const answer = await ask(urls[i % urls.length]!, { key })
    const kind = kindOf(answer)
    seen[kind] = (seen[kind] ?? 0) + 1
    refused = answer.body.allowed ? 0 : refused + 1
  }
  return seen
}

withClocks('clocks of engines an hour apart, counts in Redis: one limit, by the clock of Redis', async () => {
  const redis = await startRedis()
  await withSeveralClocks(`redis://${HOST}:${redis.port}`, async (urls) => {
    const dates = await Promise.all(
      urls.map(async (url) => Date.parse((await fetch(`${url}/healthz`)).headers.get('date')!)),
    )
    assert.ok(dates[2]! - dates[0]! > 7_000_000, 'the clocks are two hours apart')
    const seen = await admittedInTurns(urls, 'a')
    show('clocks, Redis', seen)
    assert.equal(seen, { 'allowed by redis': LIMIT, 'refused by redis': CLOCKS.length })
    const [behind, right, ahead] = urls as [string, string, string]
    const { token } = (await ask(right, { key: 'b', token: true })).body
    assert.is(
      (await ask(ahead, { token }, '/v1/refund')).body.code,
      'ERR_MILLRACE_INVALID_TOKEN',
      'expired there',
    )
    assert.equal((await ask(behind, { token }, '/v1/refund')).body, { refunded: 1 })
    assert.equal((await ask(right, { token }, '/v1/refund')).body, { refunded: 0 })
  })
  await redis.stop()
})

withClocks(
  'clocks of engines an hour apart, counts in Memcached: at most the limit for each clock',
  async () => {
    const memcached = await startMemcached()
    await withSeveralClocks(`memcached://${HOST}:${memcached.port}`, async (urls) => {
      const seen = await admittedInTurns(urls, 'a')
      show('clocks, Memcached', seen)
      for (const kind of Object.keys(seen)) assert.match(kind, /^(allowed|refused) by memcached$/)
      assert.ok(seen['allowed by memcached']! <= CLOCKS.length * LIMIT)
    })
    await memcached.stop()
  },
)

const asRoot = userInfo().uid === 0 && !isLeftOut() ? any : any.skip

asRoot('a full disk under the shared file: an engine does not start, and one that runs goes on', async () => {
  const folder = temporaryFolder()
  const disk = folder.path('disk')
  mkdirSync(disk)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=48m', 'tmpfs', disk])
  try {
    const counts = ['--counts', `file:${disk}/counts`]
    await withEngine(['--limit', `${LIMIT}/1h`, '--max-keys', '1000', ...counts], async ({ url }) => {
      assert.is((await ask(url, { key: 'a' })).body.remaining, LIMIT - 1)
      const left = execFileSync('df', ['--output=avail', '-B1', disk], { encoding: 'utf8' }).split('\n')[1]
      writeFileSync(`${disk}/full`, Buffer.alloc(Number(left)))
      const seen: Record<string, number> = {}
      for (let i = 0; i < 2_000; i++) {
        const kind = kindOf(await ask(url, { key: `key ${i % 900}` }))
        seen[kind] = (seen[kind] ?? 0) + 1
      }
      show('a full disk', seen)
      assert.equal(seen, { 'allowed by its engine': 2_000 })
      const other = ['--limit', '1/1h', '--port', '0', '--counts', `file:${disk}/others`]
      const { code, stderr } = await command(other)
      assert.is(code, 4, stderr)
      assert.match(stderr, /^millrace: serve: [^\n]*(no space|ENOSPC)[^\n]*\n$/i)
    })
  } finally {
    execFileSync('umount', [disk])
    folder.remove()
  }
})

const CONFIG = JSON.stringify({ limit: '100/1m', port: 0, maxBatch: 10, logLevel: 'warn' })

any(
  'a configuration that is half written at the start: one line and exit code 2, at each place where it ends',
  async () => {
    const folder = temporaryFolder()
    const file = folder.path('service.json')
    const codes = new Map<number | null, number>()
    for (let end = 1; end < CONFIG.length; end += 7) {
      writeFileSync(file, CONFIG.slice(0, end))
      const { code, stderr } = await command(['--config', file])
      assert.match(stderr, /^millrace: serve: [^\n]+\n$/, CONFIG.slice(0, end))
      codes.set(code, (codes.get(code) ?? 0) + 1)
    }
    assert.equal([...codes.keys()], [2])
    console.log(`half a configuration: ${codes.get(2)} of ${codes.get(2)} starts refused`)
    folder.remove()
  },
)

any(
  'secrets that are half written while it runs: the ones of before hold, and no request fails',
  async () => {
    const folder = temporaryFolder()
    const tokenOf = (i: number) => `token-${i}-0123456789abcdef`
    const text = (from: number) =>
      JSON.stringify([from, from + 1].map((i) => ({ token: tokenOf(i), scopes: ['decide'] })))
    const tokensFile = folder.path('tokens.json')
    writeFileSync(tokensFile, text(0))
    await withEngine(
      ['--limit', '100000/1h', '--tokens-file', tokensFile],
      async ({ url, process, ...engine }) => {
        const load = paced((key) => ask(url, { key }, '/v1/check', tokenOf(1)), ['one'])
        const next = text(1)
        for (let end = 0; end < next.length; end += 20) {
          writeFileSync(tokensFile, next.slice(0, end))
          process.kill('SIGHUP')
          const { length } = load.answers
          await poll(() => load.answers.length > length + 4, 'load')
        }
        writeFileSync(tokensFile, next)
        process.kill('SIGHUP')
        await poll(
          async () => (await ask(url, { key: 'b' }, '/v1/check', tokenOf(2))).status === 200,
          'the new token',
        )
        const seen = tally(await load.end())
        show('half a file of tokens', seen)
        assert.equal(Object.keys(seen), ['allowed by its engine'])
        void engine
      },
    )
    folder.remove()
  },
)

any('a file of policies that is half written while it runs: the policies of before hold', async () => {
  const folder = temporaryFolder()
  const file = folder.path('policies.json')
  const text = (limit: number) => JSON.stringify({ vip: { limit, window: '1h' } })
  writeFileSync(file, text(50_000))
  await withEngine(['--limit', '1/1h', '--policies', `file:${file}`], async ({ url }) => {
    await poll(async () => (await ask(url, { key: 'vip' }, '/v1/peek')).body.limit === 50_000, 'the policy')
    const load = paced((key) => ask(url, { key }), ['vip'])
    const next = text(60_000)
    for (let end = 0; end < next.length; end += 5) {
      writeFileSync(file, next.slice(0, end))
      const { length } = load.answers
      await poll(() => load.answers.length > length + 10, 'load')
    }
    writeFileSync(file, next)
    await poll(
      async () => (await ask(url, { key: 'vip' }, '/v1/peek')).body.limit === 60_000,
      'the new policy',
    )
    const seen = tally(await load.end())
    show('half a file of policies', seen)
    assert.equal(Object.keys(seen), ['allowed by its engine'])
  })
  folder.remove()
})

any.run()
