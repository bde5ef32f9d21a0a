import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Benchmark, timesOf } from '../../bench/benchmark.js'
import { renderChart } from '../../bench/page/chart.js'
import { renderPage } from '../../bench/page/markdown.js'
import { panelsOf } from '../../bench/page/panels.js'
import { type Report, reportCase, reportSkipped } from '../../bench/report.js'

const LINKS = { chart: 'chart.svg', notes: 'notes.md' }

const check: Benchmark = {
  title: 'deciding',
  units: { ns: 'nanoseconds a decision' },
  contenders: ['Millrace, cached', 'Map floor, cached', 'Map floor, made anew'].map((name) => ({
    name,
    measure: () => ({ ns: 1 }),
  })),
  goals: [
    {
      target: 'P12',
      what: 'twelfth',
      unit: 'x',
      value: timesOf('Millrace, cached', 'Map floor, cached'),
      atMost: 4,
    },
    {
      target: 'P2',
      what: 'second',
      unit: 'x',
      value: timesOf('Millrace, cached', 'Map floor, cached'),
      atMost: 2,
    },
    { what: 'beside | them', unit: 'ns', value: () => 7 },
  ],
}
const rounds = [
  { 'Millrace, cached': { ns: 30 }, 'Map floor, cached': { ns: 10 }, 'Map floor, made anew': { ns: 20 } },
]
const report: Report = {
  machine: {
    cpu: 'A Processor',
    cores: 2,
    node: 'v20.20.2',
    date: '2026-11-21T12:00:00.000Z',
    commit: 'abc1234',
    addon: true,
  },
  quick: false,
  cases: [reportCase('check', check, rounds), reportSkipped('floor', check, 'there is no compiler')],
}

test('the page says on what it was measured', () => {
  const page = renderPage(report, LINKS)
  for (const said of ['A Processor', '2 cores', 'v20.20.2', '2026-11-21', 'abc1234', 'with the addon'])
    assert.match(page, said)
})

test('one table has all targets in order of their numbers, with bound, figure and verdict', () => {
  const page = renderPage(report, LINKS)
  const rows = page.split('\n').filter((line) => /^\| P\d/.test(line))
  assert.equal(rows, [
    '| P2 | second | check | <= 2 x | 3.00 x | 3.00 to 3.00 | **missed by 50 %** |',
    '| P12 | twelfth | check | <= 4 x | 3.00 x | 3.00 to 3.00 | met |',
  ])
  assert.match(page, '1 of 2 are met')
})

test('every contender has its row, and a goal without a target is told below', () => {
  const page = renderPage(report, LINKS)
  assert.match(page, '| Millrace, cached | 30.0 (30.0 to 30.0) |')
  assert.match(page, '| Map floor, made anew | 20.0 (20.0 to 20.0) |')
  assert.match(page, '- beside | them: 7.00 ns')
})

test('a case that could not be measured says why', () => {
  assert.match(renderPage(report, LINKS), 'Not measured: there is no compiler.')
})

test('the page shows the chart and leads to what is written by hand', () => {
  const page = renderPage(report, LINKS)
  assert.match(page, /!\[[^\]]+\]\(chart\.svg\)/)
  assert.match(page, '[notes](notes.md)')
})

test('a quick run says that it is none to quote', () => {
  assert.not.match(renderPage(report, LINKS), 'quick run')
  assert.match(renderPage({ ...report, quick: true }, LINKS), 'quick run')
})

test('a panel shows contenders on the same keys, ours told apart; what was not measured has none', () => {
  assert.equal(panelsOf(report), [
    {
      title: '10,000 hot keys, nanoseconds a decision',
      bars: [
        { name: 'Millrace', value: 30, isOurs: true },
        { name: 'Map floor', value: 10, isOurs: false },
      ],
    },
  ])
})

test('the chart is an SVG document with every name and figure', () => {
  const svg = renderChart(report)
  assert.match(svg, /^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/)
  for (const text of ['10,000 hot keys', 'Millrace', 'Map floor', '30.0', '10.0']) assert.match(svg, text)
})

test('every tag of the chart is well-formed, as browsers demand of an image', () => {
  const svg = renderChart(report)
  const tags = svg.match(/<[^>]*>/g)!
  assert.equal(
    tags.filter((tag) => !/^<\/?[\w:]+(\s+[\w:-]+="[^"<]*")*\s*\/?>$/.test(tag)),
    [],
  )
})

test('a run without any panel still has a chart', () => {
  assert.match(renderChart({ ...report, cases: [] }), '<svg')
})

test.run()
