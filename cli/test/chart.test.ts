// run: also-long

import { stripVTControlCharacters } from 'node:util'
import { type ChartOptions, lineChart, type Series } from 'millrace-cli/dist/chart.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from './fast-check.js'

const OPTIONS: ChartOptions = { width: 40, height: 11, xLabelAt: (i) => `14:0${i}`, colour: false }
const SERIES: Series[] = [
  { name: 'admitted', values: [10, 40, 40, 20, 10] },
  { name: 'refused', values: [0, 20, 0, 0, 1] },
]
const chart = (series: Series[], changes: Partial<ChartOptions> = {}) =>
  lineChart(series, { ...OPTIONS, ...changes })

test('each line has its own character, the first on top; the legend names them, and the axes have labels', () => {
  assert.is(
    chart(SERIES, { title: 'Requests a minute' }),
    `Requests a minute
40┤       ┏━━━━━━━━━━━━━┓
  │       ┃             ┃
  │       ┃             ┃
20┤       ┃××××××       ┗━━━━━━┓
  │━━━━━━━┛      ×             ┗━━━━━━
  │       ×      ×             ×××××××
 0┤×××××××       ××××××××××××××
  └┬─────────────┬─────────────┬──────▶
   14:00       14:02         14:04
━ admitted   × refused`,
  )
})

test('a chart keeps to its width and height with any number of values', () => {
  const values = (most: number) =>
    fc.array(fc.oneof(fc.constant(0), fc.nat(9), fc.nat(1e9), fc.constantFrom(0.002, 0.7, 2.25)), {
      maxLength: most,
    })
  const series = fc.record({ name: fc.string({ maxLength: 60 }), values: values(300) })
  const some = fc.array(series, { minLength: 1, maxLength: 7 })
  fc.assert(
    fc.property(some, fc.constantFrom(20, 30, 40, 41, 80, 120, 250), fc.nat(20), (lines, width, more) => {
      const height = 7 + lines.length + more
      const text = chart(lines, { width, height, title: 'title '.repeat(9) })
      const rows = text.split('\n')
      for (const row of rows) assert.ok(row.length <= width, `${width}: ${row}`)
      assert.ok(rows.length <= height, `${rows.length} of ${height}`)
      assert.not.match(text, /NaN|Infinity|undefined/)
      assert.not.match(text, '\x1b')
    }),
  )
})

test('a peak keeps its height with more values than columns', () => {
  for (const at of [0, 1, 4_321, 9_999]) {
    const values = Array.from({ length: 10_000 }, (_, i) => (i === at ? 100 : 0))
    const rows = chart([{ name: 'requests', values }]).split('\n')
    assert.match(rows[0]!, /100┤ *[┏┓━]/)
  }
})

test('one among a thousand is visible', () => {
  const refused = { name: 'refused', values: [0, 1, 0] }
  const admitted = { name: 'admitted', values: [1_000, 1_000, 1_000] }
  const rows = chart([admitted, refused]).split('\n')
  assert.match(rows.at(-5)!, /× *×|××/)
})

test('colour does not change the text', () => {
  const plain = chart(SERIES)
  const coloured = chart(SERIES, { colour: true })
  assert.is(stripVTControlCharacters(coloured), plain)
  assert.match(coloured, '\x1b[32m━\x1b[39m admitted   \x1b[31m×\x1b[39m refused')
  assert.not.match(plain, '\x1b')
})

test('labels that do not fit are omitted, and none repeats for one value', () => {
  const labels = (values: number[], width: number, xLabelAt = OPTIONS.xLabelAt) =>
    chart([{ name: 'a', values }], { width, xLabelAt })
      .split('\n')
      .at(-2)!
      .trim()
      .split(/ {2,}/)
  assert.equal(labels([1, 2, 3, 4, 5], 20), ['14:00', '14:04'])
  assert.equal(labels([1], 80), ['14:00'])
  assert.equal(labels([1, 2], 80), ['14:00', '14:01'])
  assert.equal(
    labels([1, 2, 3], 40, () => 'x'.repeat(50)),
    [''],
  )
})

test('a chart of no values, or of zeros, is empty', () => {
  for (const values of [[], [0], [0, 0, 0]]) assert.match(chart([{ name: 'none', values }]), / 0┤|^0┤━/m)
})

test.run()
