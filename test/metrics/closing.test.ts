// A limiter that closes, of each kind: its name is free at once, its counters stay with all that it has decided, and the
// next limiter of that name goes on from there.
import { attachLimiter, createLimiter } from 'millrace'
import { createBackendLimiter, type Values } from 'millrace/backend'
import { memoryConfig } from 'millrace/config/memory'
import { rateLimit } from 'millrace/http'
import { type Counting, register } from 'millrace/metrics'
import { Registry } from 'prom-client'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { of, type Series, scrape, sum } from './scrape.js'

const RULES = { limit: 3, window: '1h' } as const
const POOL = { engine: 'pool', pool: { maxThreads: 1 } } as const
const CONFIG = { default: RULES, config: memoryConfig({ big: { limit: 9, window: '1m' } }) } as const
const NAMED = {
  rules: [
    { ...RULES, name: 'one' },
    { ...RULES, name: 'two' },
  ],
} as const

interface Limited {
  check(key: string): unknown
  close(): Promise<void>
  /** What is registered, if it is not the limiter itself. */
  readonly counting?: Counting
}

const values = new Map<string, Uint8Array>()
const store: Values = {
  read: async (keys) => keys.map((key) => values.get(key)),
  swap: async (key, before, after) => {
    if (values.get(key) !== before) return false
    values.set(key, after)
    return true
  },
}
const BACKEND = { values: store, source: 'map', prefix: 'closing', deadline: '1m' } as const

const KINDS: Record<string, () => Limited> = {
  'an inline limiter': () => createLimiter(RULES),
  'several rules': () => createLimiter(NAMED),
  'an attached limiter': () => attachLimiter(createLimiter(RULES).share()),
  'a limiter by a configuration': () => createLimiter(CONFIG),
  'a pool': () => createLimiter({ ...RULES, ...POOL }),
  'a pool by a configuration': () => createLimiter({ ...CONFIG, ...POOL }),
  'a backend': () => createBackendLimiter({ ...RULES, ...BACKEND }),
  'a backend by a configuration': () => createBackendLimiter({ ...CONFIG, ...BACKEND }),
  'the limiter of a middleware': () => {
    const limiter = createLimiter(RULES)
    const counting = rateLimit({ limiter })
    return { counting, check: (key) => limiter.check(key), close: () => limiter.close() }
  },
  'the pool of a middleware': () => {
    const limiter = createLimiter({ ...RULES, ...POOL })
    const counting = rateLimit({ limiter })
    return { counting, check: (key) => limiter.check(key), close: () => limiter.close() }
  },
}

/** What was decided under a name. */
const decisionsOf = (series: Series, name: string): number =>
  sum(
    Object.fromEntries(
      Object.entries(of(series, 'millrace_decisions_total')).filter(([key]) => key.includes(`=${name},`)),
    ),
  )

for (const [kind, open] of Object.entries(KINDS)) {
  test(`the name is free at once, and no decision is lost or counts twice: ${kind}`, async () => {
    const registry = new Registry()
    let expected = 0
    let before: Series = new Map()
    for (let round = 1; round <= 4; round++) {
      const limiter = open()
      const counting = limiter.counting ?? (limiter as unknown as Counting)
      register({ api: counting }, registry)
      for (let i = 0; i < 5; i++) await limiter.check('key')
      if (round % 2 === 0) await scrape(registry) // the others are closed unread
      // On their way, unless they are decided at once: a pool answers them, a server's limiter gives them up.
      const last = kind.includes('pool') ? [1, 2].map(() => limiter.check('other')) : []
      const closed = limiter.close()
      const next = createLimiter(RULES)
      register({ api: next }, registry)
      await Promise.all([...last, closed])
      next.check('key')
      expected += 5 + last.length + 1
      const series = await scrape(registry)
      assert.is(decisionsOf(series, 'api'), expected, `round ${round}`)
      for (const [key, value] of before)
        if (key.includes('_total{')) assert.ok(series.get(key)! >= value, `${round}: ${key}`)
      before = series
      await next.close()
    }
    const gauges = [...(await scrape(registry)).keys()].filter(
      (key) => !/_(total|bucket|sum|count)\{/.test(key),
    )
    assert.equal(gauges, [], 'what is of the present goes')
  })
}

test('what a memory has counted counts once while limiters on it close and open, and others are added', async () => {
  const registry = new Registry()
  const first = createLimiter(RULES)
  const attached = attachLimiter(first.share())
  const shared = async () => sum(of(await scrape(registry), 'millrace_shared_decisions_total'))
  register({ api: first }, registry)
  for (let i = 0; i < 5; i++) first.check('key')
  await first.close()
  register({ api: attached }, registry)
  for (let i = 0; i < 2; i++) attached.check('key')
  assert.is(await shared(), 7, 'of one memory')
  await attached.close()
  const other = createLimiter(RULES)
  register({ api: other }, registry)
  assert.is(await shared(), 7)
  other.check('key')
  assert.is(await shared(), 8)
  await other.close()
})

test('an object of a user is found closed by the next scrape, or taken out by the function of register', async () => {
  const registry = new Registry()
  const limiter = createLimiter(RULES)
  const wrapped = { stats: async () => limiter.stats() }
  const end = register({ api: wrapped }, registry)
  limiter.check('key')
  await end()
  register({ api: wrapped }, registry)
  limiter.check('key')
  assert.is(decisionsOf(await scrape(registry), 'api'), 2)
  await limiter.close()
  assert.is(decisionsOf(await scrape(registry), 'api'), 2)
  register({ api: createLimiter(RULES) }, registry)
  assert.is(decisionsOf(await scrape(registry), 'api'), 2)
})

test.run()
