// `millrace/client` over a list of engines that are processes: which engine has a key, and what a key gets when its engine
// dies, comes and restarts.
// run: long
import { createClient } from 'millrace/client'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Rendezvous } from '#millrace/core/rendezvous.js'
import { isLeftOut } from '../native/sides.js'
import { poll } from '../redis/poll.js'
import { freePort } from '../redis/ports.js'
import { answeredBy } from './balanced.js'
import { type Command, command } from './command-line.js'
import { temporaryFolder } from './folder.js'

const LIMIT = 20
const NAMES = ['a', 'b', 'c'] as const
const KEYS = Array.from({ length: 60 }, (_, i) => `user:${i}`)
const byKey = (names: readonly string[]) => new Rendezvous(names.map((name) => [name, name]))
const sum = (figures: readonly number[]) => figures.reduce((total, figure) => total + figure, 0)

interface Engines {
  readonly ports: Readonly<Record<string, number>>
  start(name: string): Promise<void>
  end(name: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
  client(names: readonly string[], onOutage?: 'closed' | 'open'): ReturnType<typeof createClient>
}

/** @param countsOf where an engine counts */
async function withEngines(countsOf: (name: string) => string, act: (engines: Engines) => Promise<void>) {
  const ports: Record<string, number> = {}
  const running = new Map<string, Command>()
  const engines: Engines = {
    ports,
    async start(name) {
      ports[name] ??= await freePort()
      const args = ['--limit', `${LIMIT}/1h`, '--counts', countsOf(name), '--port', `${ports[name]}`]
      running.set(name, await command(args))
    },
    async end(name, signal) {
      const { process, end } = running.get(name)!
      if (signal === 'SIGKILL') process.kill(signal)
      await end()
      running.delete(name)
    },
    client: (names, onOutage = 'closed') =>
      createClient({
        urls: names.map((name) => ({ name, url: `http://127.0.0.1:${ports[name]}` })),
        deadline: '5s',
        onOutage,
      }),
  }
  try {
    await Promise.all(NAMES.map(engines.start))
    await act(engines)
  } finally {
    await Promise.all([...running.values()].map(({ end }) => end()))
  }
}

type Client = ReturnType<typeof createClient>

/** What each key gets until an engine refuses it, or there is none for it. */
const admittedOf = (client: Client) =>
  Promise.all(
    KEYS.map(async (key) => {
      for (let admitted = 0; ; admitted++) {
        const { allowed } = await client.check(key)
        if (!allowed) return admitted
      }
    }),
  )

/** Until the engine answers the client again. */
const untilBack = (client: Client, names: readonly string[], name: string) => {
  let i = 0
  while (byKey(names).find(`other ${i}`) !== name) i++
  return poll(async () => (await client.peek(`other ${i}`)).source === 'service', `an answer of ${name}`)
}

test('a batch is split: each engine gets one request, with its own keys', () =>
  withEngines(
    () => 'memory',
    async ({ client, ports }) => {
      const limiter = client(NAMES)
      const { allowed } = await limiter.checkMany(KEYS)
      assert.ok(allowed.every((one) => one === 1))
      await Promise.all(KEYS.map((key) => limiter.check(key)))
      for (const name of NAMES) {
        assert.is(await answeredBy(`http://127.0.0.1:${ports[name]}`), 2, `requests to ${name}`)
        const own = createClient({ url: `http://127.0.0.1:${ports[name]}`, deadline: '5s' })
        for (const key of KEYS)
          assert.is(await own.usage(key), byKey(NAMES).find(key) === name ? 2 : 0, `${key} on ${name}`)
        await own.close()
      }
      await limiter.close()
    },
  ))

const PLACES = [
  { place: 'memory', again: LIMIT },
  { place: 'a file', again: 0 },
] as const

for (const { place, again } of PLACES) {
  const register = place === 'a file' && isLeftOut() ? test.skip : test
  register(
    `counts in ${place}: a key gets ${again} more when its engine is back, and its limit once more on another`,
    async () => {
      const folder = temporaryFolder()
      const countsOf = (name: string) => (place === 'memory' ? 'memory' : `file:${folder.path(name)}`)
      await withEngines(countsOf, async ({ client, end, start }) => {
        const limiter = client(NAMES)
        const ofA = (units: number) => KEYS.map((key) => (byKey(NAMES).find(key) === 'a' ? units : 0))
        assert.equal(
          await admittedOf(limiter),
          KEYS.map(() => LIMIT),
        )
        const measured: Record<string, number> = { first: KEYS.length * LIMIT }

        await end('a', 'SIGKILL')
        const away = await admittedOf(limiter)
        assert.equal(
          away,
          KEYS.map(() => 0),
          'no engine has the keys of one that is away',
        )
        const [own] = KEYS.filter((key) => byKey(NAMES).find(key) === 'a')
        assert.is((await limiter.check(own!)).source, 'outage')
        await start('a')
        await untilBack(limiter, NAMES, 'a')
        const back = await admittedOf(limiter)
        assert.equal(back, ofA(again))
        measured['after a kill and the return'] = sum(back)

        await end('a', 'SIGTERM')
        await start('a')
        await untilBack(limiter, NAMES, 'a')
        const restarted = await admittedOf(limiter)
        assert.equal(restarted, ofA(again))
        measured['after a restart'] = sum(restarted)

        await start('d')
        const four = [...NAMES, 'd']
        const wider = client(four)
        const joined = await admittedOf(wider)
        assert.equal(
          joined,
          KEYS.map((key) => (byKey(four).find(key) === 'd' ? LIMIT : 0)),
        )
        measured['after another engine has joined the list'] = sum(joined)

        const again2 = await admittedOf(limiter)
        assert.equal(
          again2,
          KEYS.map(() => 0),
          'the engines of before still have the counts',
        )
        const narrower = client(['b', 'c', 'd'])
        const left = await admittedOf(narrower)
        assert.equal(
          left,
          KEYS.map((key) => (byKey(four).find(key) === 'a' ? LIMIT : 0)),
        )
        measured['after an engine has left the list'] = sum(left)
        console.log(`client, counts in ${place}: ${JSON.stringify(measured)} of ${KEYS.length} keys`)
        for (const one of [limiter, wider, narrower]) await one.close()
      })
      folder.remove()
    },
  )
}

test('an engine is killed under load and comes back: no key gets more than its limit once more', () =>
  withEngines(
    () => 'memory',
    async ({ client, end, start, ports }) => {
      const limiter = client(NAMES)
      const admitted = KEYS.map(() => 0)
      let isDone = false
      const load = KEYS.map(async (key, i) => {
        while (!isDone) if ((await limiter.check(key)).allowed) admitted[i]!++
      })
      await poll(async () => (await answeredBy(`http://127.0.0.1:${ports.a}`)) > 5, 'load')
      await end('a', 'SIGKILL')
      await start('a')
      await untilBack(limiter, NAMES, 'a')
      await poll(() => KEYS.every((_, i) => admitted[i]! >= LIMIT), 'all limits')
      isDone = true
      await Promise.all(load)
      const { withoutStore } = await limiter.stats()
      console.log(
        `client under load: at most ${Math.max(...admitted)} of a key, ${withoutStore.closed} refused without the engine`,
      )
      assert.ok(admitted.every((units) => units >= LIMIT && units <= 2 * LIMIT))
      assert.ok(Math.max(...admitted) > LIMIT)
      await limiter.close()
    },
  ))

test.run()
