// Names are texts of others: nothing in a label leaves its line, and there are never more than 1,000 label sets.
import { createLimiter } from 'millrace'
import { rateLimit } from 'millrace/http'
import { register } from 'millrace/metrics'
import { Registry } from 'prom-client'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { of, scrape, sum } from './scrape.js'

const WINDOW = { window: '1h', maxKeys: 100 } as const
const NASTY = {
  script: '<script>alert(1)</script>',
  terminal: '\u001b[2J\u001b]0;title\u0007\u009b31m',
  bidi: 'a\u202eb\u2066c\u200fd',
  lines: 'x 1\nmillrace_decisions_total{limiter="api"} 99\r\n\u2028\u2029',
  quotes: 'a"} 1 \\" \\n {b="c',
  long: 'x'.repeat(65_536),
  surrogate: 'a\ud800b',
  prototype: '__proto__',
}

const ACTIVE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u

for (const [name, text] of Object.entries(NASTY)) {
  test(`${name} as the name of a limiter, a rule and a route is one short line in labels`, async () => {
    const registry = new Registry()
    const limiter = createLimiter({ ...WINDOW, limit: 1, name: text })
    const site = rateLimit({
      ...WINDOW,
      limit: 1,
      routes: { [`/${text.replaceAll(/[*:\s]/g, '')}`]: { limit: 5, window: '1h' } },
    })
    register(
      Object.fromEntries([
        ['plain', limiter],
        [text, limiter],
        ['site', site],
      ]),
      registry,
    )
    for (let i = 0; i < 3; i++) limiter.check('a')
    const output = await registry.metrics()
    for (const line of output.split('\n')) {
      assert.not.match(line, ACTIVE)
      assert.ok(line.length < 1_200, `${line.length}`)
    }
    const series = await scrape(registry) // throws for a line that is none, and for a series that is there twice
    assert.is(sum(of(series, 'millrace_decisions_total')), 6)
    assert.is(series.get('millrace_decisions_total{limiter=api}'), undefined)
    await site.close()
  })
}

test('a metric has at most 1,000 label sets, the rest is other, and no decision is lost', async () => {
  const registry = new Registry()
  const limiters = Array.from(
    { length: 700 },
    (_, i) => [`limiter ${i}`, createLimiter({ ...WINDOW, limit: 2 })] as const,
  )
  register(Object.fromEntries(limiters.slice(0, 100)), registry)
  await scrape(registry)
  register(Object.fromEntries(limiters.slice(100)), registry)
  for (const [, limiter] of limiters) for (let i = 0; i < 3; i++) limiter.check('a')
  const before = await scrape(registry)
  const names = new Set([...before.keys()].map((key) => key.slice(0, key.indexOf('{'))))
  for (const name of names) assert.ok(Object.keys(of(before, name)).length <= 1_000, name)
  const decisions = of(before, 'millrace_decisions_total')
  assert.is(Object.keys(decisions).length, 996)
  assert.is(sum(decisions), 2_100)
  assert.is(decisions['limiter=other,outcome=admitted'], 2 * (700 - 248))
  assert.is(decisions['limiter=limiter 0,outcome=admitted,store=memory'], 2)
  for (const [, limiter] of limiters) limiter.check('a')
  const after = await scrape(registry)
  assert.equal([...after.keys()], [...before.keys()], 'a label set stays what it is')
  for (const [key, value] of before) if (key.includes('_total')) assert.ok(after.get(key)! >= value, key)
  assert.is(sum(of(after, 'millrace_decisions_total')), 2_800)
})

test.run()
