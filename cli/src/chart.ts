import { styleText } from 'node:util'
import { plot } from 'simple-ascii-chart'
import { shortened } from './terminal.js'

export interface Series {
  name: string
  /** Values of 0 or more. All series of a chart have the same number of them. */
  values: readonly number[]
}

export interface ChartOptions {
  /** The most columns of a line; at least 20. */
  width: number
  /** Total lines, at least 7: title, plot, axis, labels, and the legend if it fits on one line. */
  height: number
  title?: string
  /** The label below the value at this index. */
  xLabelAt: (index: number) => string
  /** Whether to add colour. The lines differ without colour too. */
  colour: boolean
}

/** The characters of each line: the first line has corners, the others repeat one character. */
const CORNERS = { flat: '━', upright: '┃', up: ['┛', '┏'], down: ['┓', '┗'] } as const
const MARKS = [CORNERS.flat, '×', '·', 'o', '+', '#'] as const
const COLOURS = ['green', 'red', 'cyan', 'yellow', 'magenta', 'blue'] as const
const ROWS_PER_TICK = 3
const MIN_ROWS = 3
const LABEL_GAP = 2
const LEGEND_GAP = 3
const MAX_LABELS = 6

type Paint = (text: string, line: number) => string

/**
 * Draws lines over a common axis that starts at 0. If there are more values than columns, a column shows the
 * highest of its values: limits are about short peaks, which a mean would hide and a sum would exaggerate. If
 * there are fewer, all values are equally wide.
 */
export function lineChart(series: readonly Series[], options: ChartOptions): string {
  const { width, height, title, xLabelAt, colour } = options
  const length = Math.max(1, ...series.map(({ values }) => values.length))
  const paint: Paint = (text, line) =>
    // The caller has decided on colour; styleText must not check the stream again.
    colour ? styleText(COLOURS[line % COLOURS.length]!, text, { validateStream: false }) : text

  const titles = title === undefined ? [] : [shortened(title, width)]
  const keys = legend(series, width, paint)
  const rows = Math.max(MIN_ROWS, height - titles.length - keys.length - 2)
  const { top, figures } = scale(series, Math.max(1, Math.floor(rows / ROWS_PER_TICK)))
  const margin = Math.max(...figures.map((figure) => label(figure).length))
  const room = Math.max(1, width - margin - 2) // the axis and the tip of its arrow
  const columns = length < room ? room - (room % length) : room
  const indexAt = (column: number) => Math.floor((column * length) / columns)
  const { ticks, text } = xLabels(columns, Math.min(columns, length), (column) => xLabelAt(indexAt(column)))

  const lines = plot(
    series.map(({ values }) => sampled(values, length, columns, top / (rows - 1) / 2)).reverse(), // the first series is drawn last, on top
    {
      width: columns,
      height: rows,
      yRange: [0, top],
      customYAxisTicks: figures,
      customXAxisTicks: ticks,
      // The x labels are added below, because the library lets them overlap. It also reserves room for the
      // longest label of any value, even if it does not print it.
      formatter: (value, { axis }) => (axis === 'y' ? label(value).slice(0, margin).padStart(margin) : ''),
      lineFormatter: pointFormatter(paint, series.length),
    },
  )
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.trim().startsWith('▲'))
  const labels = ' '.repeat(lines.at(-1)!.indexOf('└') + 1) + text
  return [...titles, ...lines, labels, ...keys].map((line) => line.trimEnd()).join('\n')
}

/** One value per column. A value above 0 becomes at least `visible`, so that it does not look like 0. */
function sampled(values: readonly number[], length: number, columns: number, visible: number) {
  return Array.from({ length: columns }, (_, column) => {
    const from = Math.floor((column * length) / columns)
    const to = Math.max(from + 1, Math.floor(((column + 1) * length) / columns))
    let highest = 0
    for (let i = from; i < Math.min(to, values.length); i++) highest = Math.max(highest, values[i]!)
    return [column, highest > 0 ? Math.max(highest, visible) : 0] as [x: number, y: number]
  })
}

/** The ticks of the y axis: at most `most` multiples of 1, 2 or 5 times a power of ten. */
function scale(series: readonly Series[], most: number): { top: number; figures: number[] } {
  let highest = 0
  let areIntegers = true
  for (const { values } of series) {
    for (const value of values) {
      highest = Math.max(highest, value)
      areIntegers &&= Number.isInteger(value)
    }
  }
  if (highest === 0) return { top: 1, figures: [0, 1] }
  const power = 10 ** Math.floor(Math.log10(highest / most))
  const steps = [1, 2, 5, 10].map((factor) => factor * power)
  const fitting = steps.find((step) => Math.ceil(highest / step) <= most) ?? 10 * power
  const step = areIntegers ? Math.max(1, fitting) : fitting
  const count = Math.ceil(highest / step)
  const figures = Array.from({ length: count + 1 }, (_, i) => Number((i * step).toPrecision(12)))
  return { top: figures.at(-1)!, figures }
}

const figure = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 })
const shortFigure = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3, notation: 'compact' })

function label(value: number): string {
  return (value < 10_000 ? figure : shortFigure).format(value)
}

/** As many evenly spaced labels as fit, each at the start of a value; the first is at the axis. */
function xLabels(columns: number, values: number, labelAt: (column: number) => string) {
  for (let count = Math.min(MAX_LABELS, values); count > 0; count--) {
    const ticks = Array.from(
      { length: count },
      (_, i) => Math.round((i * (values - 1)) / Math.max(1, count - 1)) * (columns / values),
    )
    let text = ''
    const fits = ticks.every((tick, i) => {
      const name = labelAt(tick)
      const middle = tick - Math.floor(name.length / 2)
      const start = i === 0 ? 0 : Math.min(middle, columns - name.length)
      if (i > 0 && start < text.length + LABEL_GAP) return false
      text = text.padEnd(start) + name
      return text.length <= columns
    })
    if (fits) return { ticks, text }
  }
  return { ticks: [] as number[], text: '' }
}

/**
 * Formats the points of the lines. The library calls it for each point of a line from left to right, and then
 * for the next line. The last series comes first, so that the first one stays visible.
 */
function pointFormatter(paint: Paint, lines: number) {
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
      else if (row === before && row !== y) continue // only the line with corners draws the turn
      symbols.push({ x, y: row, symbol: paint(symbol, line) })
    }
    before = y
    return symbols
  }
}

/** The names of the lines on one line, or on one line each if they do not fit. */
function legend(series: readonly Series[], width: number, paint: Paint): string[] {
  const names = series.map(({ name }) => shortened(name, width - 2))
  const keys = names.map((name, line) => `${paint(mark(line), line)} ${name}`)
  const together = names.reduce((sum, name) => sum + 2 + name.length, LEGEND_GAP * (names.length - 1))
  return together <= width ? [keys.join(' '.repeat(LEGEND_GAP))] : keys
}

function mark(line: number): string {
  return MARKS[line % MARKS.length]!
}
