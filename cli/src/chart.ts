import { styleText } from 'node:util'
import { plot } from 'simple-ascii-chart'
import { shortened } from './terminal.js'

export interface Series {
  name: string
  /** 0 or more each; the same number of them in every series of a chart. */
  values: readonly number[]
}

export interface ChartOptions {
  /** Columns, of which no line takes more: from 20. */
  width: number
  /** Lines in all, from 7: the title, the plot, its axis and labels, and the legend where that fits on one line. */
  height: number
  title?: string
  /** What stands below the value of this index. */
  xLabelAt: (index: number) => string
  /** Adds colour; the lines are told apart without. */
  colour: boolean
}

/** How each line looks, by its number: the first is a line with corners, the others are of one character. */
const CORNERS = { flat: '━', upright: '┃', up: ['┛', '┏'], down: ['┓', '┗'] } as const
const MARKS = [CORNERS.flat, '×', '·', 'o', '+', '#'] as const
const COLOURS = ['green', 'red', 'cyan', 'yellow', 'magenta', 'blue'] as const
const ROWS_PER_FIGURE = 3
const FEWEST_ROWS = 3
const BETWEEN_LABELS = 2
const BETWEEN_KEYS = 3
const MOST_LABELS = 6

type Paint = (text: string, line: number) => string

/**
 * Lines over a common axis, from 0. Where there are more values than columns, a column shows the highest of its values:
 * a peak of one moment is what a limit is about, and a mean would hide it, a sum would invent one. Where there are
 * fewer, each value is as many columns wide as the others.
 */
export function lineChart(series: readonly Series[], options: ChartOptions): string {
  const { width, height, title, xLabelAt, colour } = options
  const length = Math.max(1, ...series.map(({ values }) => values.length))
  const paint: Paint = (text, line) =>
    // Whether there is colour has been decided: the stream is not asked again.
    colour ? styleText(COLOURS[line % COLOURS.length]!, text, { validateStream: false }) : text

  const titles = title === undefined ? [] : [shortened(title, width)]
  const keys = legend(series, width, paint)
  const rows = Math.max(FEWEST_ROWS, height - titles.length - keys.length - 2)
  const { top, figures } = scale(series, Math.max(1, Math.floor(rows / ROWS_PER_FIGURE)))
  const margin = Math.max(...figures.map((figure) => label(figure).length))
  const room = Math.max(1, width - margin - 2) // the axis, and the point of its arrow
  const columns = length < room ? room - (room % length) : room
  const indexAt = (column: number) => Math.floor((column * length) / columns)
  const { ticks, text } = xLabels(columns, Math.min(columns, length), (column) => xLabelAt(indexAt(column)))

  const lines = plot(
    series.map(({ values }) => sampled(values, length, columns, top / (rows - 1) / 2)).reverse(), // the last below the others
    {
      width: columns,
      height: rows,
      yRange: [0, top],
      customYAxisTicks: figures,
      customXAxisTicks: ticks,
      // The labels below the axis are ours: the library would let them run into each other.
      // It leaves as much room for figures as the longest of any value would take, even where it writes none.
      formatter: (value, { axis }) => (axis === 'y' ? label(value).slice(0, margin).padStart(margin) : ''),
      lineFormatter: pen(paint, series.length),
    },
  )
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.trim().startsWith('▲'))
  const labels = ' '.repeat(lines.at(-1)!.indexOf('└') + 1) + text
  return [...titles, ...lines, labels, ...keys].map((line) => line.trimEnd()).join('\n')
}

/** One value for each column; one above 0 is at least `visible`, so that few among many are not drawn as none. */
function sampled(values: readonly number[], length: number, columns: number, visible: number) {
  return Array.from({ length: columns }, (_, column) => {
    const from = Math.floor((column * length) / columns)
    const to = Math.max(from + 1, Math.floor(((column + 1) * length) / columns))
    let highest = 0
    for (let i = from; i < Math.min(to, values.length); i++) highest = Math.max(highest, values[i]!)
    return [column, highest > 0 ? Math.max(highest, visible) : 0] as [x: number, y: number]
  })
}

/** The figures of the y axis: multiples of 1, 2 or 5 times a power of ten, so few that they have room. */
function scale(series: readonly Series[], most: number): { top: number; figures: number[] } {
  let highest = 0
  let areWhole = true
  for (const { values } of series) {
    for (const value of values) {
      highest = Math.max(highest, value)
      areWhole &&= Number.isInteger(value)
    }
  }
  if (highest === 0) return { top: 1, figures: [0, 1] }
  const power = 10 ** Math.floor(Math.log10(highest / most))
  const steps = [1, 2, 5, 10].map((factor) => factor * power)
  const enough = steps.find((step) => Math.ceil(highest / step) <= most) ?? 10 * power
  const step = areWhole ? Math.max(1, enough) : enough
  const count = Math.ceil(highest / step)
  const figures = Array.from({ length: count + 1 }, (_, i) => Number((i * step).toPrecision(12)))
  return { top: figures.at(-1)!, figures }
}

const figure = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 })
const shortFigure = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3, notation: 'compact' })

function label(value: number): string {
  return (value < 10_000 ? figure : shortFigure).format(value)
}

/** As many labels as have room, evenly apart, each where a value begins; the first stands at the axis. */
function xLabels(columns: number, values: number, labelAt: (column: number) => string) {
  for (let count = Math.min(MOST_LABELS, values); count > 0; count--) {
    const ticks = Array.from(
      { length: count },
      (_, i) => Math.round((i * (values - 1)) / Math.max(1, count - 1)) * (columns / values),
    )
    let text = ''
    const fits = ticks.every((tick, i) => {
      const name = labelAt(tick)
      const middle = tick - Math.floor(name.length / 2)
      const start = i === 0 ? 0 : Math.min(middle, columns - name.length)
      if (i > 0 && start < text.length + BETWEEN_LABELS) return false
      text = text.padEnd(start) + name
      return text.length <= columns
    })
    if (fits) return { ticks, text }
  }
  return { ticks: [] as number[], text: '' }
}

/**
 * Draws line after line, the last first, so that the first is never hidden: the library asks for each point of a line, from
 * left to right, and then for the next line.
 */
function pen(paint: Paint, lines: number) {
  let line = lines
  let before = 0
  return ({ index, plotX: x, plotY: y }: { index: number; plotX: number; plotY: number }) => {
    if (index === 0) {
      line--
      before = y
    }
    const [top, bottom] = [Math.min(before, y), Math.max(before, y)]
    const [leaves, arrives] = y < before ? CORNERS.up : CORNERS.down
    const symbols = []
    for (let row = top; row <= bottom; row++) {
      let symbol: string = mark(line)
      if (symbol === CORNERS.flat && top !== bottom)
        symbol = row === before ? leaves : row === y ? arrives : CORNERS.upright
      else if (row === before && row !== y) continue // what is no line with corners need not turn
      symbols.push({ x, y: row, symbol: paint(symbol, line) })
    }
    before = y
    return symbols
  }
}

/** What each line is, side by side; below each other where that is too wide. */
function legend(series: readonly Series[], width: number, paint: Paint): string[] {
  const names = series.map(({ name }) => shortened(name, width - 2))
  const keys = names.map((name, line) => `${paint(mark(line), line)} ${name}`)
  const together = names.reduce((sum, name) => sum + 2 + name.length, BETWEEN_KEYS * (names.length - 1))
  return together <= width ? [keys.join(' '.repeat(BETWEEN_KEYS))] : keys
}

function mark(line: number): string {
  return MARKS[line % MARKS.length]!
}
