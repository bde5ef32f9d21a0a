// Three engines that count in their own memory behind a balancer that hashes the key: examples/haproxy/by-key.cfg and
// examples/nginx/by-key.conf, with Debian's programs.
// run: long
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'
import { haproxyTest, nginxTest } from '../redis/skip.js'
import { answeredBy, type Fleet, fleet } from './balanced.js'

const LIMIT = 10
/** So that the load goes on while an engine is killed. */
const HIGH_LIMIT = 100
const KEYS = Array.from({ length: 60 }, (_, i) => `user:${i}`)
/** Of one key at the same time. */
const CALLERS = 2
const KILLED = 0

const BALANCERS = [
  ['haproxy', 'examples/haproxy/by-key.cfg', haproxyTest],
  ['nginx', 'examples/nginx/by-key.conf', nginxTest],
] as const

const by = (key: string) => ({ 'x-millrace-key': key })

const startEngines = (program: 'haproxy' | 'nginx', example: string, limit: number) =>
  fleet(program, example, ['--limit', `${limit}/1h`, '--key-header'])

/** What each key gets until it is refused, with several callers at once. */
async function admittedOf({ post }: Fleet): Promise<number[]> {
  const admitted = KEYS.map(() => 0)
  const caller = async (key: string, i: number) => {
    for (;;) {
      const { status, body } = await post('/v1/check', {}, by(key))
      assert.not.equal(status, 429)
      if (status !== 200) continue // lost or 502 while an engine goes: nobody has admitted it
      if (!body.allowed) return
      admitted[i]!++
    }
  }
  await Promise.all(KEYS.flatMap((key, i) => Array.from({ length: CALLERS }, () => caller(key, i))))
  return admitted
}

/** The keys that an engine has counted. */
async function keysOn(url: string): Promise<Set<string>> {
  const found = new Set<string>()
  for (const key of KEYS) {
    const answer = await fetch(`${url}/v1/usage`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...by(key) },
      body: '{}',
    })
    if (((await answer.json()) as { usage: number }).usage > 0) found.add(key)
  }
  return found
}

const sum = (figures: readonly number[]) => figures.reduce((total, figure) => total + figure, 0)

for (const [program, example, test] of BALANCERS) {
  test(`${program}: a key gets its limit, and once more for each change of its engine`, async () => {
    const engines = await startEngines(program, example, LIMIT)
    try {
      const first = await admittedOf(engines)
      assert.equal(
        first,
        KEYS.map(() => LIMIT),
      )
      const lost = await keysOn(engines.urls[KILLED]!)
      assert.ok(lost.size > 0 && lost.size < KEYS.length)
      const ofLost = KEYS.map((key) => (lost.has(key) ? LIMIT : 0))

      await engines.end(KILLED, 'SIGKILL')
      const afterKill = await admittedOf(engines)
      assert.equal(afterKill, ofLost)

      await engines.begin(KILLED)
      const [moved] = lost
      await poll(
        async () => (await engines.post('/v1/peek', {}, by(moved!))).body?.remaining === LIMIT,
        'the way back of a key to its engine',
      )
      const afterReturn = await admittedOf(engines)
      assert.equal(afterReturn, ofLost)
      console.log(
        `${program}: ${sum(first)} of ${KEYS.length} keys, ${sum(afterKill)} more after a kill, ${sum(afterReturn)} more after the return`,
      )
    } finally {
      await engines.close()
    }
  })

  test(`${program}: an engine that is killed under load gives no key more than its limit once more`, async () => {
    const engines = await startEngines(program, example, HIGH_LIMIT)
    try {
      const asked = admittedOf(engines)
      await poll(async () => (await answeredBy(engines.urls[KILLED]!)) > 100, 'load on the engine')
      await engines.end(KILLED, 'SIGKILL')
      const admitted = await asked
      console.log(`${program}: at most ${Math.max(...admitted)} of a key under load, ${sum(admitted)} in all`)
      assert.ok(Math.max(...admitted) > HIGH_LIMIT, 'it was killed after it had admitted')
      assert.ok(admitted.every((units) => units >= HIGH_LIMIT && units <= 2 * HIGH_LIMIT))
    } finally {
      await engines.close()
    }
  })

  test(`${program}: several keys in one request are refused by name, and so is a request without the header`, async () => {
    const engines = await startEngines(program, example, LIMIT)
    try {
      const checks = [{ key: 'a' }, { key: 'b' }]
      const several = await engines.post('/v1/check', { checks }, by('a'))
      assert.equal(
        [several.status, several.body.code, several.body.field],
        [400, 'ERR_MILLRACE_SEVERAL_KEYS', 'checks[1].key'],
      )
      const without = await engines.post('/v1/check', { key: 'a' })
      assert.equal([without.status, without.body.code], [400, 'ERR_MILLRACE_KEY_HEADER'])
      assert.is((await engines.post('/v1/peek', { key: 'a' }, by('a'))).body.remaining, LIMIT)
    } finally {
      await engines.close()
    }
  })
}

haproxyTest.run()
