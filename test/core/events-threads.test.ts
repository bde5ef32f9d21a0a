// run: own
// How the events of other threads show keys, when the thread that shares a limiter hashes them.
import { createHmac } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { createLimiter, openLimiter, type SharedLimiter, setEventOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { test as addonTest } from '../native/addon-test.js'
import { folder } from '../shared-file/processes.js'

const SECRET = 'a secret of the caller'
const RULE = { limit: 1, window: '1m' } as const
const hashed = (key: string, secret = SECRET) => createHmac('sha256', secret).update(key).digest('base64url')

/** The keys in the events of a thread that attaches a limiter, and is refused for each of them. */
async function shownByThread(
  shared: SharedLimiter,
  keys: readonly string[],
  options?: object,
): Promise<{ shown: string[]; top: string[] }> {
  const worker = new Worker(new URL('./events-worker.js', import.meta.url), {
    workerData: { shared, keys, options },
  })
  const [[answer]] = await Promise.all([once(worker, 'message'), once(worker, 'exit')])
  return answer
}

/** All texts in what is sent to a thread, and in the memory that it shares. */
function contentsOf(shared: SharedLimiter): string {
  const bytes = (what: SharedArrayBuffer) => Buffer.from(new Uint8Array(what).slice())
  const memory = Object.values(shared).filter((value) => value instanceof SharedArrayBuffer)
  return (
    JSON.stringify(shared, (_, value) => (typeof value === 'bigint' ? String(value) : value)) +
    memory.map((each) => bytes(each).toString('latin1') + bytes(each).toString('utf16le')).join()
  )
}

const PLACES = {
  memory: [test, () => createLimiter(RULE)],
  'several rules': [
    test,
    () =>
      createLimiter({
        rules: [
          { name: 'one', ...RULE },
          { name: 'other', limit: 5, window: '1h' },
        ],
      }),
  ],
  'a pool': [test, () => createLimiter({ ...RULE, engine: 'pool', pool: { maxThreads: 1 } })],
  'a file': [
    addonTest as typeof test,
    () => openLimiter({ ...RULE, shared: { file: folder()('events.arena') } }),
  ],
} as const

for (const [place, [each, make]] of Object.entries(PLACES)) {
  each(
    `${place}: an attached thread hashes keys, by a secret of its own or the one that it is given`,
    async () => {
      const limiter = await make()
      const before = await shownByThread(limiter.share(), ['a'])
      assert.equal(before.shown, ['a'], 'texts, where nobody hashes')
      setEventOptions({ keyInEvents: 'hash', secret: SECRET })
      try {
        const shared = limiter.share()
        assert.not.ok(contentsOf(shared).includes(SECRET))
        const { shown, top } = await shownByThread(shared, ['b', 'c', 'b'])
        assert.equal(shown[0], shown[2])
        assert.match(shown[0]!, /^[\w-]{43}$/)
        for (const key of ['b', 'c']) assert.not.ok(shown.includes(key) || shown.includes(hashed(key)))
        assert.equal(top.toSorted(), [...new Set(shown)].toSorted())
        const given = await shownByThread(shared, ['d'], { keyInEvents: 'hash', secret: SECRET })
        assert.equal(given.shown, [hashed('d')])
        const texts = await shownByThread(shared, ['e'], {})
        assert.equal(texts.shown, ['e'], 'a thread may choose texts')
        assert.not.ok(contentsOf(limiter.share()).includes(SECRET))
      } finally {
        setEventOptions({})
      }
      await limiter.close()
    },
  )
}

test('decisions of a pool are hashed by the secret of the thread that calls', async () => {
  const pool = createLimiter({ ...RULE, engine: 'pool', pool: { maxThreads: 1 } })
  const shown: unknown[] = []
  subscribe('millrace:limited', (message) => shown.push((message as { key: unknown }).key))
  setEventOptions({ keyInEvents: 'hash', secret: SECRET })
  await pool.check('key')
  await pool.check('key')
  await pool.checkMany(['key'])
  setEventOptions({})
  await pool.check('key')
  assert.equal(shown, [hashed('key'), hashed('key'), 'key'])
  await pool.close()
})

test.run()
