import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Benchmark, type Goal, ratioOf } from '../../bench/benchmark.js'
import { renderChart } from '../../bench/page/chart.js'
import { renderPage } from '../../bench/page/markdown.js'
import { panelsOf } from '../../bench/page/panels.js'
import { updatePage } from '../../bench/page/update.js'
import { SPEED } from '../../bench/page/write.js'
import { type Report, reportCase, reportSkipped } from '../../bench/report.js'

const LINKS = { ...SPEED, chart: 'chart.svg', notes: 'notes.md' }

const check: Benchmark = {
  title: 'deciding',
  units: { ns: 'nanoseconds per decision' },
  contenders: ['Millrace, cached strings', 'bare Map, cached strings', 'bare Map, fresh strings'].map(
    (name) => ({
      name,
      measure: () => ({ ns: 1 }),
    }),
  ),
  goals: [
    {
      target: 'P12',
      label: 'twelfth',
      unit: 'x',
      value: ratioOf('Millrace, cached strings', 'bare Map, cached strings'),
      atMost: 4,
    },
    {
      target: 'P2',
      label: 'second',
      unit: 'x',
      value: ratioOf('Millrace, cached strings', 'bare Map, cached strings'),
      atMost: 2,
    },
    { label: 'left | right', unit: 'ns', value: () => 7 },
  ],
}
const rounds = [
  {
    'Millrace, cached strings': { ns: 30 },
    'bare Map, cached strings': { ns: 10 },
    'bare Map, fresh strings': { ns: 20 },
  },
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
  tookMs: 1_260_000,
  cases: [reportCase('check', check, rounds, 60_000), reportSkipped('floor', check, 'there is no compiler')],
}

test('the page names the machine and the commit', () => {
  const page = renderPage(report, LINKS)
  for (const text of ['A Processor', '2 cores', 'v20.20.2', '2026-11-21', 'abc1234', 'with the addon'])
    assert.match(page, text)
})

test('the page says how long the run took', () => {
  assert.match(renderPage(report, LINKS), 'The measurements took 21.0 minutes.')
})

test('a target is judged on the better build, which its row names if that is the one without the addon', () => {
  const [twelfth, second, other] = check.goals as [Goal, Goal, Goal]
  const atLeast = { label: 'at least', unit: 'x', atLeast: 2, target: 'P20', value: () => 1 } as const
  const goals = [
    { ...twelfth, withoutAddon: () => 5 },
    { ...second, withoutAddon: () => 1.5 },
    other,
    { ...atLeast, withoutAddon: () => 2.5 },
  ]
  const judged = { ...report, cases: [reportCase('check', { ...check, goals }, rounds, 0)] }
  const rows = renderPage(judged, LINKS)
    .split('\n')
    .filter((line) => /^\| P\d/.test(line))
  assert.equal(rows, [
    '| P2 | second (without the addon) | check | <= 2 x | 1.50 x | 1.50 to 1.50 | met |',
    '| P12 | twelfth | check | <= 4 x | 3.00 x | 3.00 to 3.00 | met |',
    '| P20 | at least (without the addon) | check | >= 2 x | 2.50 x | 2.50 to 2.50 | met |',
  ])
})

test('the table of targets is sorted by number and has bound, figures and result', () => {
  const page = renderPage(report, LINKS)
  const rows = page.split('\n').filter((line) => /^\| P\d/.test(line))
  assert.equal(rows, [
    '| P2 | second | check | <= 2 x | 3.00 x | 3.00 to 3.00 | **missed by 50 %** |',
    '| P12 | twelfth | check | <= 4 x | 3.00 x | 3.00 to 3.00 | met |',
  ])
  assert.match(page, '1 of 2 targets are met')
})

test('every contender has a row, and goals without a target follow as a list', () => {
  const page = renderPage(report, LINKS)
  assert.match(page, '| Millrace, cached strings | 30.0 (30.0 to 30.0) |')
  assert.match(page, '| bare Map, fresh strings | 20.0 (20.0 to 20.0) |')
  assert.match(page, '- left | right: 7.00 ns')
})

test('a skipped case gives its reason', () => {
  assert.match(renderPage(report, LINKS), 'Not measured: there is no compiler.')
})

test('the page shows the chart and links to the notes', () => {
  const page = renderPage(report, LINKS)
  assert.match(page, /!\[[^\]]+\]\(chart\.svg\)/)
  assert.match(page, '[notes](notes.md)')
})

/** The lines of a page that say where and when something was measured. */
const machinesOf = (page: string): string[] =>
  page.split('\n').filter((line) => line.startsWith('Measured on'))

test('a page takes the rows and the section of a case that is measured again, and keeps the others', () => {
  const machine = { ...report.machine, date: '2026-11-28T12:00:00.000Z', commit: 'def5678' }
  const slower = [{ ...rounds[0]!, 'bare Map, cached strings': { ns: 5 } }]
  const added = reportCase('added', { ...check, goals: check.goals.slice(0, 1) }, rounds, 0)
  const again = { ...report, machine, cases: [reportCase('check', check, slower, 0), added] }
  const page = renderPage(report, LINKS)
  const updated = updatePage(page, again)
  const expected = renderPage({ ...report, cases: [again.cases[0]!, report.cases[1]!, added] }, LINKS)
  const withoutMachines = (text: string) => text.replaceAll(/(?<=\n\n)Measured on: [^\n]*def5678\.\n\n/g, '')
  assert.is(withoutMachines(updated), expected)
  assert.is(machinesOf(updated).filter((line) => line.includes('def5678')).length, 2)
  assert.is(machinesOf(updated)[0], machinesOf(page)[0])
  assert.is(updatePage(updated, again), updated)
})

test('the targets of a service stay as those of the library do', () => {
  const other = {
    ...check,
    goals: check.goals.map((goal) =>
      goal.target ? { ...goal, target: goal.target.replace('P', 'S') } : goal,
    ),
  }
  const ofService = { ...report, cases: [reportCase('service', other, rounds, 0)] }
  const updated = updatePage(renderPage(ofService, LINKS), report)
  const targets = updated.split('\n').flatMap((line) => /^\| ([A-Z]\d+) \|/.exec(line)?.[1] ?? [])
  assert.equal(targets.sort(), ['P12', 'P2', 'S12', 'S2'])
})

test('the page of a quick run says not to quote it', () => {
  assert.not.match(renderPage(report, LINKS), 'trial run')
  assert.match(renderPage({ ...report, quick: true }, LINKS), 'trial run')
})

test('a panel shows contenders on the same keys and marks Millrace; cases not measured have no panel', () => {
  assert.equal(panelsOf(report), [
    {
      title: '10,000 hot keys, nanoseconds per decision',
      bars: [
        { name: 'Millrace', value: 30, isMillrace: true },
        { name: 'bare Map', value: 10, isMillrace: false },
      ],
    },
  ])
})

test('the chart is an SVG document with every name and figure', () => {
  const svg = renderChart(report)
  assert.match(svg, /^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/)
  for (const text of ['10,000 hot keys', 'Millrace', 'bare Map', '30.0', '10.0']) assert.match(svg, text)
})

test('every tag of the chart is well-formed XML, which browsers require of an image', () => {
  const svg = renderChart(report)
  const tags = svg.match(/<[^>]*>/g)!
  assert.equal(
    tags.filter((tag) => !/^<\/?[\w:]+(\s+[\w:-]+="[^"<]*")*\s*\/?>$/.test(tag)),
    [],
  )
})

test('a report without cases still has a chart', () => {
  assert.match(renderChart({ ...report, cases: [] }), '<svg')
})

test.run()
