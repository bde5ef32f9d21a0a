// Engines that count in files: three of one machine on one file, and each with a file of its own behind a balancer that
// hashes the key.
// run: long
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'
import { haproxyTest as test } from '../redis/skip.js'
import { type Balanced, type Fleet, fleet } from './balanced.js'
import { temporaryFolder } from './folder.js'

const LIMIT = 20
const KEYS = Array.from({ length: 30 }, (_, i) => `user:${i}`)
const KILLED = 0

type Ask = (key: string) => Promise<Balanced>
const any =
  ({ post }: Fleet): Ask =>
  (key) =>
    post('/v1/check', { key })
const byKey =
  ({ post }: Fleet): Ask =>
  (key) =>
    post('/v1/check', {}, { 'x-millrace-key': key })

/** What each key gets until it is refused. An answer that is lost has admitted nothing that a caller knows of. */
function admittedBy(ask: Ask): Promise<number[]> {
  return Promise.all(
    KEYS.map(async (key) => {
      for (let admitted = 0; ; ) {
        const { status, body } = await ask(key)
        assert.ok([0, 200, 502, 503].includes(status), `${status}`)
        if (status !== 200) continue
        if (!body.allowed) return admitted
        admitted++
      }
    }),
  )
}

const each = (units: number) => KEYS.map(() => units)
const sum = (figures: readonly number[]) => figures.reduce((total, figure) => total + figure, 0)

test('three engines on one file are one limit, also while one is killed and comes back', async () => {
  const folder = temporaryFolder()
  const args = ['--limit', `${LIMIT}/1h`, '--counts', `file:${folder.path('counts')}`, '--drain-delay', '2s']
  const engines = await fleet('haproxy', 'examples/haproxy/haproxy.cfg', args)
  try {
    const ask = any(engines)
    const first = KEYS.slice(0, 3)
    for (const key of first) assert.is((await ask(key)).body.remaining, LIMIT - 1)
    const asked = admittedBy(ask)
    await engines.end(KILLED, 'SIGKILL')
    const admitted = await asked
    // What the killed engine had charged, and could not say.
    const lost = sum(each(LIMIT)) - sum(admitted) - first.length
    assert.ok(admitted.every((units) => units <= LIMIT) && lost >= 0 && lost <= KEYS.length, `${lost} lost`)
    assert.equal(await admittedBy(ask), each(0), 'after the kill')
    await engines.begin(KILLED)
    const isBack = async () => {
      const answer = await fetch(`${engines.urls[KILLED]}/v1/usage`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ key: KEYS[0] }),
      })
      return ((await answer.json()) as { usage: number }).usage
    }
    assert.is(await isBack(), LIMIT, 'the engine that came back has the counts')
    assert.equal(await admittedBy(ask), each(0), 'after the return')
    console.log(
      `one file: ${sum(admitted) + first.length} of ${KEYS.length} keys, ${lost} charged and lost by a kill`,
    )
  } finally {
    await engines.close()
    folder.remove()
  }
})

test('each engine its own file: a key gets its limit once more when its engine is away, and nothing when it is back', async () => {
  const folder = temporaryFolder()
  const engines = await fleet('haproxy', 'examples/haproxy/by-key.cfg', (engine) => [
    ...['--limit', `${LIMIT}/1h`, '--key-header', '--counts', `file:${folder.path(`engine-${engine}`)}`],
  ])
  try {
    const ask = byKey(engines)
    assert.equal(await admittedBy(ask), each(LIMIT))
    await engines.end(KILLED, 'SIGKILL')
    const away = await admittedBy(ask)
    assert.ok(away.every((units) => units === 0 || units === LIMIT) && sum(away) > 0)
    await engines.begin(KILLED)
    const [moved] = KEYS.filter((_, i) => away[i]! > 0)
    const usageOf = async (key: string) => {
      const answer = await fetch(`${engines.urls[KILLED]}/v1/usage`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-millrace-key': key },
        body: '{}',
      })
      return ((await answer.json()) as { usage: number }).usage
    }
    assert.is(await usageOf(moved!), LIMIT, 'its file has the counts of before')
    await poll(
      async () => (await engines.post('/v1/peek', {}, { 'x-millrace-key': 'new' })).status === 200,
      'an answer',
    )
    const back = await admittedBy(ask)
    assert.equal(back, each(0))
    console.log(
      `own files: ${KEYS.length * LIMIT} of ${KEYS.length} keys, ${sum(away)} more after a kill, 0 more after the return`,
    )
  } finally {
    await engines.close()
    folder.remove()
  }
})

test.run()
