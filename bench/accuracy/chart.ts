/** The chart of docs/algorithms.md. */
import type { Accuracy } from './judge.js'
import { type Results, type Row, shown } from './page.js'

const WIDTH = 920
const MARGIN = 20
const NAMES_WIDTH = 190
const PANEL_WIDTH = 280
const BETWEEN_PANELS = 70
const HEAD = 62
const ROW_HEIGHT = 26
const FOOT = 44
const BAR_HEIGHT = 14
const DOT_RADIUS = 3
const TITLE = 'Accuracy of each algorithm: the largest excess in a window, and the share wrongly refused'
/** At twice the limit, an algorithm that is a little late admits as many requests, but others. */
const OTHER_REQUESTS = 'steady, 200 %'
const KEY = `A dot for each workload, a bar up to the largest. Shorter is better. Wrongly refused: without "${OTHER_REQUESTS}".`

/** A background of its own makes the chart legible on any page. */
const STYLE = `
  text { font: 13px system-ui, Helvetica, Arial, sans-serif; fill: #24292f; }
  .paper { fill: #ffffff; }
  .title { font-size: 15px; font-weight: 600; }
  .note { fill: #57606a; font-size: 12px; }
  .axis { stroke: #8c959f; }
  .over { fill: #f0a868; }
  .refused { fill: #8fb8f5; }
  circle { fill: #24292f; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .paper { fill: #0d1117; }
    .note { fill: #9da7b3; }
    .axis { stroke: #6e7681; }
    .over { fill: #b45f1d; }
    .refused { fill: #2a62b8; }
    circle { fill: #e6edf3; }
  }
`

interface Panel {
  readonly kind: 'over' | 'refused'
  readonly title: string
  readonly unit: string
  value(figures: Accuracy): number
  /** The workload that it leaves out. */
  readonly without?: string
}

const PANELS: readonly Panel[] = [
  {
    kind: 'over',
    title: 'Largest excess in a window',
    unit: '% of the limit',
    value: ({ excess }) => excess,
  },
  {
    kind: 'refused',
    title: 'Wrongly refused',
    unit: '% of what an exact log admits',
    value: ({ wronglyRefused }) => wronglyRefused,
    without: OTHER_REQUESTS,
  },
]

/** An SVG document: a row for each algorithm, a panel for each figure from 0 to 100 %. */
export function renderChart({ workloads, rows }: Results): string {
  const height = HEAD + rows.length * ROW_HEIGHT + FOOT
  const names = rows.map(({ name }, i) => text(MARGIN, baseline(i), name))
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img">`,
    `<title>${TITLE}</title>`,
    `<style>${STYLE}</style>`,
    '<rect class="paper" width="100%" height="100%" rx="6"/>',
    ...names,
    ...PANELS.flatMap((panel, i) => {
      const shownOf = ({ figures }: Row) => figures.filter((_, at) => workloads[at] !== panel.without)
      const values = rows.map((row) => shownOf(row).map(panel.value))
      return panelOf(panel, MARGIN + NAMES_WIDTH + i * (PANEL_WIDTH + BETWEEN_PANELS), values)
    }),
    text(MARGIN, height - 16, KEY.replaceAll('"', '&quot;'), 'note'),
    '</svg>',
  ]
  return `${parts.join('\n')}\n`
}

function panelOf({ kind, title, unit }: Panel, left: number, rows: readonly (readonly number[])[]): string[] {
  const at = (percent: number): number => round(left + (PANEL_WIDTH * percent) / 100)
  const bottom = HEAD + rows.length * ROW_HEIGHT
  const drawn = rows.flatMap((values, i) => {
    const largest = Math.max(...values)
    const middle = HEAD + (i + 0.5) * ROW_HEIGHT
    const width = round(at(largest) - left)
    const top = middle - BAR_HEIGHT / 2
    const bar = `<rect class="${kind}" x="${left}" y="${top}" width="${width}" height="${BAR_HEIGHT}"/>`
    const dots = [...new Set(values.map(at))].map(
      (x) => `<circle cx="${x}" cy="${middle}" r="${DOT_RADIUS}"/>`,
    )
    return [bar, ...dots, text(at(largest) + 8, baseline(i), shown(largest))]
  })
  return [
    text(left, 30, title, 'title'),
    text(left, 48, unit, 'note'),
    ...drawn,
    `<path class="axis" d="M${left} ${HEAD}V${bottom}"/>`,
  ]
}

const baseline = (row: number): number => HEAD + (row + 0.5) * ROW_HEIGHT + 4.5

function text(x: number, y: number, content: string, kind?: string): string {
  const attribute = kind === undefined ? '' : ` class="${kind}"`
  return `<text${attribute} x="${x}" y="${y}">${content}</text>`
}

const round = (pixels: number): number => Math.round(pixels * 10) / 10
