/** The chart of docs/measurements/performance.md, drawn without a browser. */
import { type EChartsOption, init } from 'echarts'
import { day, number } from '../format.js'
import type { Report } from '../report.js'
import { type Panel, panelsOf } from './panels.js'

const WIDTH = 1_000
const COLUMNS = 2
const MARGIN = 20
const NAMES_WIDTH = 175 // pixels of the longest contender's name in FONT
const VALUES_WIDTH = 50
const TITLE_HEIGHT = 44
const BAR_HEIGHT = 30
const CAPTION_HEIGHT = 34

const MILLRACE_COLOR = '#1f6feb'
const PEER_COLOR = '#b6bec9'
const TEXT = '#24292f'
const CAPTION = '#57606a'
const TITLE = 'Millrace compared with its peers: time per decision, heap and longest pause'
const PAPER = '#ffffff'
/** No name may need quotes: echarts writes the text into an attribute unescaped. */
const FONT = 'system-ui, Helvetica, Arial, sans-serif'

/**
 * An SVG document with a panel of bars for each measured figure, on white so that it is legible on any page.
 */
export function renderChart(report: Report): string {
  const layouts = layoutOf(panelsOf(report))
  const captionTop = Math.max(0, ...layouts.map(({ top, height }) => top + height)) + MARGIN
  const height = captionTop + CAPTION_HEIGHT
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height })
  chart.setOption(optionsOf(layouts, { text: captionOf(report), top: captionTop }))
  const svg = chart.renderToSVGString()
  chart.dispose()
  return `${titled(withoutStyles(svg))}\n`
}

/** Removes the styles, which are only for hovering; an image has none. */
function withoutStyles(svg: string): string {
  return svg.replace(/<style[^>]*>[\s\S]*?<\/style>\s*/g, '')
}

/** Adds a title for screen readers. */
function titled(svg: string): string {
  return svg.replace(/^<svg[^>]*>/, (tag) => `${tag}\n<title>${TITLE}</title>`)
}

function captionOf({ machine: { cpu, node, date, commit }, quick }: Report): string {
  const run = quick ? 'a trial run, not to be quoted' : 'medians'
  return `Shorter is better; ${run}. ${cpu}, Node ${node}, ${day(date)}, commit ${commit}`
}

interface PanelLayout extends Panel {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/** Two panels per row; a row is as high as its panel with more bars. */
function layoutOf(panels: readonly Panel[]): PanelLayout[] {
  const width = (WIDTH - MARGIN * (COLUMNS + 1)) / COLUMNS
  const layouts: PanelLayout[] = []
  let top = MARGIN
  for (let row = 0; row < panels.length; row += COLUMNS) {
    const inRow = panels.slice(row, row + COLUMNS)
    const height = TITLE_HEIGHT + BAR_HEIGHT * Math.max(...inRow.map(({ bars }) => bars.length))
    inRow.forEach((panel, column) => {
      layouts.push({ ...panel, left: MARGIN + column * (width + MARGIN), top, width, height })
    })
    top += height + MARGIN
  }
  return layouts
}

function optionsOf(layouts: readonly PanelLayout[], caption: { text: string; top: number }): EChartsOption {
  return {
    animation: false,
    backgroundColor: PAPER,
    textStyle: { fontFamily: FONT, color: TEXT },
    title: [
      ...layouts.map(({ title, left, top }) => ({
        text: title,
        left,
        top,
        padding: 0,
        textStyle: { fontSize: 15, fontWeight: 600, fontFamily: FONT, color: TEXT } as const,
      })),
      {
        ...caption,
        left: MARGIN,
        padding: 0,
        textStyle: { fontSize: 12, fontWeight: 400, fontFamily: FONT, color: CAPTION },
      },
    ],
    grid: layouts.map(({ left, top, width, bars }) => ({
      left: left + NAMES_WIDTH,
      top: top + TITLE_HEIGHT - 14,
      width: width - NAMES_WIDTH - VALUES_WIDTH,
      height: BAR_HEIGHT * bars.length,
    })),
    xAxis: layouts.map((_, gridIndex) => ({ type: 'value', gridIndex, show: false, min: 0 })),
    yAxis: layouts.map(({ bars }, gridIndex) => ({
      type: 'category',
      gridIndex,
      inverse: true, // the first bar on top
      data: bars.map(({ name }) => name),
      axisLine: { show: false },
      axisTick: { show: false },
      axisLabel: { fontSize: 13, color: TEXT, interval: 0 },
    })),
    series: layouts.map(({ bars }, index) => ({
      type: 'bar',
      silent: true, // an image has no pointer events
      emphasis: { disabled: true },
      xAxisIndex: index,
      yAxisIndex: index,
      barWidth: '64%',
      label: {
        show: true,
        position: 'right',
        fontSize: 13,
        color: TEXT,
        formatter: ({ value }) => number(value as number),
      },
      data: bars.map(({ value, isMillrace }) => ({
        value,
        itemStyle: { color: isMillrace ? MILLRACE_COLOR : PEER_COLOR },
      })),
    })),
  }
}
