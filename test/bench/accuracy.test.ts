// run: full, also-long

import { ALGORITHM_OPTIONS } from 'millrace/internal'
import { PROMISES } from 'millrace-cli/dist/replay/promises.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { renderChart } from '../../bench/accuracy/chart.js'
import { admittedBy, checkMost, compare, exactly } from '../../bench/accuracy/judge.js'
import { BEGIN, END, renderTables, shown, withTables } from '../../bench/accuracy/page.js'
import { resultsOf } from '../../bench/accuracy/results.js'
import { mostInWindow, VARIANTS } from '../../bench/accuracy/variants.js'
import {
  boundaryBursts,
  EXAMPLE_LOG,
  onAndOff,
  steady,
  trafficOf,
  workloads,
} from '../../bench/accuracy/workloads.js'
import { random } from '../../bench/random.js'
import fc from '../fast-check.js'
import { readText } from '../package/root.js'

const MINUTE_MS = 60_000
const RULE = { limit: 100, windowMs: MINUTE_MS }
const results = await resultsOf(workloads(EXAMPLE_LOG))

/** The most moments in any window, by definition. */
const mostIn = (moments: readonly number[], windowMs: number): number =>
  Math.max(0, ...moments.map((end) => moments.filter((at) => at > end - windowMs && at <= end).length))

/** Requests of one client in some milliseconds, and decisions about them. */
const decided = fc.array(fc.record({ atMs: fc.nat(60), allowed: fc.boolean() }), { maxLength: 60 })
const rules = fc.record({ limit: fc.integer({ min: 1, max: 5 }), windowMs: fc.integer({ min: 1, max: 30 }) })

test('the exact log admits a request if fewer than the limit of the admitted ones lie in its window', () => {
  fc.assert(
    fc.property(fc.array(decided, { minLength: 1, maxLength: 3 }), rules, (clients, rule) => {
      const momentsOf = clients.map((requests) => requests.map(({ atMs }) => atMs))
      const expected = momentsOf.flatMap((moments) => {
        const admitted: number[] = []
        const inOrder = moments.map((atMs, i) => ({ atMs, i })).sort((a, b) => a.atMs - b.atMs || a.i - b.i)
        const answers = new Array<number>(moments.length).fill(0)
        for (const { atMs, i } of inOrder) {
          if (admitted.filter((at) => atMs - at < rule.windowMs).length >= rule.limit) continue
          admitted.push(atMs)
          answers[i] = 1
        }
        return answers
      })
      assert.equal([...exactly(trafficOf(momentsOf), rule)], expected)
    }),
  )
})

test('the figures are those of a recount by their definitions', () => {
  fc.assert(
    fc.property(decided, rules, (requests, rule) => {
      const inOrder = requests.toSorted((a, b) => a.atMs - b.atMs)
      const traffic = trafficOf([inOrder.map(({ atMs }) => atMs)])
      const admitted = Uint8Array.from(inOrder, ({ allowed }) => Number(allowed))
      const exact = exactly(traffic, rule)
      const passed = inOrder.filter(({ allowed }) => allowed).map(({ atMs }) => atMs)
      const over = passed.filter((atMs, i) => {
        return passed.slice(0, i).filter((at) => atMs - at < rule.windowMs).length >= rule.limit
      })
      const refused = inOrder.filter(({ allowed }, i) => !allowed && exact[i] === 1)
      const exactCount = exact.filter((one) => one === 1).length
      const percent = (part: number, whole: number) => (whole === 0 ? 0 : (100 * part) / whole)
      assert.equal(compare(traffic, rule, admitted, exact), {
        wronglyRefused: percent(refused.length, exactCount),
        wronglyAdmitted: percent(over.length, passed.length),
        excess: percent(Math.max(0, mostIn(passed, rule.windowMs) - rule.limit), rule.limit),
        admitted: percent(passed.length, exactCount),
      })
    }),
  )
})

test('the exact log compared with itself has no error', () => {
  const traffic = trafficOf([onAndOff(random(7))])
  const exact = exactly(traffic, RULE)
  const none = { wronglyRefused: 0, wronglyAdmitted: 0, excess: 0, admitted: 100 }
  assert.equal(compare(traffic, RULE, exact, exact), none)
})

test('bursts at boundaries use the limit at the end of a window and at the beginning of the next', () => {
  const moments = boundaryBursts(random(1))
  const windowOf = (atMs: number) => Math.floor(atMs / MINUTE_MS)
  const first = windowOf(moments[0]!)
  assert.is(moments[0], first * MINUTE_MS)
  assert.is(moments.length % 201, 0)
  for (let burst = 0; burst < moments.length / 201; burst++) {
    const inWindow = (window: number) => moments.filter((atMs) => windowOf(atMs) === first + window).length
    assert.equal(
      [0, 1, 2].map((window) => inWindow(3 * burst + window)),
      [101, 100, 0],
    )
  }
  assert.is(mostIn(moments.slice(0, 201), 2_000), 200)
})

test('steady traffic keeps its share of the limit, and below it no window is over', () => {
  for (const share of [0.5, 0.99, 1.01, 2]) {
    const moments = steady(share, random(3))
    const lengthMs = moments.at(-1)! - moments[0]!
    const perWindow = (moments.length - 1) / (lengthMs / MINUTE_MS)
    assert.ok(Math.abs(perWindow - 100 * share) < 1, `${perWindow} a window at ${share}`)
    assert.is(mostIn(moments, MINUTE_MS) > 100, share > 1)
  }
})

test('on and off traffic sends three times the limit, and pauses', () => {
  const moments = onAndOff(random(5))
  assert.equal(
    moments,
    moments.toSorted((a, b) => a - b),
  )
  const gaps = moments.slice(1).map((atMs, i) => atMs - moments[i]!)
  const pauses = gaps.filter((ms) => ms > 1_000)
  assert.ok(pauses.length > 10)
  assert.ok(pauses.every((ms) => ms > 11_000 && ms < 121_000))
  const onMs = gaps.filter((ms) => ms <= 1_000)
  const perWindow = onMs.length / (onMs.reduce((sum, ms) => sum + ms, 0) / MINUTE_MS)
  assert.ok(Math.abs(perWindow - 300) < 10, `${perWindow} a window`)
})

test('traffic is the same each time, and differs between clients', async () => {
  for (const workload of workloads(EXAMPLE_LOG)) {
    const traffic = await workload.traffic()
    assert.equal(await workload.traffic(), traffic, workload.name)
    const momentsOf = [0, 1].map((one) => `${traffic.atMs.filter((_, i) => traffic.client[i] === one)}`)
    assert.is.not(momentsOf[0], momentsOf[1])
  }
})

test('every algorithm of the library is compared, with options that it has', () => {
  const compared = new Set(VARIANTS.map(({ algorithm }) => algorithm))
  assert.equal([...compared].sort(), Object.keys(PROMISES).sort())
  for (const { algorithm, options } of VARIANTS)
    for (const option of Object.keys(options?.(RULE) ?? {}))
      assert.ok((ALGORITHM_OPTIONS[algorithm] as readonly string[]).includes(option))
  assert.is(new Set(VARIANTS.map(({ name }) => name)).size, VARIANTS.length)
})

test('algorithms that may admit the limit only have no excess and no wrong admission', () => {
  const exact = VARIANTS.filter((variant) => mostInWindow(variant, RULE) === RULE.limit)
  assert.ok(exact.some(({ name }) => name === 'sliding-window'))
  for (const { name } of exact) {
    const { figures } = results.rows.find((row) => row.name === name)!
    assert.ok(
      figures.every(({ excess, wronglyAdmitted }) => excess === 0 && wronglyAdmitted === 0),
      name,
    )
  }
})

test('a fixed window admits twice the limit at a boundary, less the request that opened the window', () => {
  const traffic = trafficOf([boundaryBursts(random(1)).slice(0, 201)])
  for (const name of ['fixed-window', 'fixed-window, align first']) {
    const variant = VARIANTS.find((each) => each.name === name)!
    assert.is(admittedBy(variant, traffic, RULE).filter((one) => one === 1).length, 200)
  }
})

test('what each algorithm may admit in a window', () => {
  assert.equal(
    VARIANTS.map((variant) => mostInWindow(variant, RULE)),
    [100, 100, 200, 100, 193, 200, 200, 200, 120, 200],
  )
})

test('an algorithm that admits more than it may is an error', () => {
  const [strict] = VARIANTS as [(typeof VARIANTS)[number]]
  checkMost(strict, RULE, 100)
  assert.throws(() => checkMost(strict, RULE, 101), 'sliding-window admitted 101 in a window')
  const small = VARIANTS.find(({ name }) => name === 'token-bucket, burst limit/5')!
  checkMost(small, RULE, 120)
  assert.throws(() => checkMost(small, RULE, 121), 'It may admit 120')
})

test('docs/algorithms.md and its chart have the present figures: `npm run dev -- accuracy:page` writes them', () => {
  const page = readText('docs/algorithms.md')
  assert.ok(page.includes(renderTables(results)))
  assert.is(withTables(page, results), page)
  assert.is(readText('docs/accuracy.svg'), renderChart(results))
})

test('only the generated part of a page changes', () => {
  const page = `before\n\n${BEGIN}\n\nold\n\n${END}\n\nafter\n`
  const changed = withTables(page, results)
  assert.ok(changed.startsWith(`before\n\n${BEGIN}\n`) && changed.endsWith(`${END}\n\nafter\n`))
  assert.not.match(changed, 'old')
  assert.throws(() => withTables(`${END} ${BEGIN}`, results), 'the page lacks')
})

test('a small share is not shown as none', () => {
  assert.equal([0, 0.01, 0.05, 1.24, 99.96, 100].map(shown), ['0', '<0.1', '0.1', '1.2', '100', '100'])
})

test('every tag of the chart is well-formed, and its colours differ in the dark', () => {
  const svg = renderChart(results)
  const tags = svg.replace(/<style>[^<]*<\/style>/, '').match(/<[^>]*>/g)!
  assert.equal(
    tags.filter((tag) => !/^<\/?[\w:]+(\s+[\w:-]+="[^"<]*")*\s*\/?>$/.test(tag)),
    [],
  )
  assert.match(svg, 'prefers-color-scheme: dark')
  for (const { name } of VARIANTS) assert.match(svg, `>${name}</text>`)
})

test.run()
