/** The chart of docs/performance.md, drawn without a browser. */
import { type EChartsOption, init } from 'echarts'
import { number } from '../format.js'
import type { Report } from '../report.js'
import { type Panel, panelsOf } from './panels.js'

const WIDTH = 1_000
const COLUMNS = 2
const MARGIN = 20
const NAMES_WIDTH = 175 // of the longest contender's name, in the font below
const VALUES_WIDTH = 50
const TITLE_HEIGHT = 44
const BAR_HEIGHT = 30

const OURS = '#1f6feb'
const OTHERS = '#b6bec9'
const TEXT = '#24292f'
const PAPER = '#ffffff'
const FONT = 'system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif'

/** An SVG document with a panel of bars for each thing that was measured; on white, for pages of any colour. */
export function renderChart(report: Report): string {
  const places = placesOf(panelsOf(report))
  const height = Math.max(0, ...places.map(({ top, height }) => top + height)) + MARGIN
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height })
  chart.setOption(optionsOf(places))
  const svg = chart.renderToSVGString()
  chart.dispose()
  return `${svg}\n`
}

interface Place extends Panel {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/** Two beside each other, each pair as high as the one with more bars. */
function placesOf(panels: readonly Panel[]): Place[] {
  const width = (WIDTH - MARGIN * (COLUMNS + 1)) / COLUMNS
  const places: Place[] = []
  let top = MARGIN
  for (let row = 0; row < panels.length; row += COLUMNS) {
    const beside = panels.slice(row, row + COLUMNS)
    const height = TITLE_HEIGHT + BAR_HEIGHT * Math.max(...beside.map(({ bars }) => bars.length))
    beside.forEach((panel, column) => {
      places.push({ ...panel, left: MARGIN + column * (width + MARGIN), top, width, height })
    })
    top += height + MARGIN
  }
  return places
}

function optionsOf(places: readonly Place[]): EChartsOption {
  return {
    animation: false,
    backgroundColor: PAPER,
    textStyle: { fontFamily: FONT, color: TEXT },
    title: places.map(({ title, left, top }) => ({
      text: title,
      left,
      top,
      padding: 0,
      textStyle: { fontSize: 15, fontWeight: 600, fontFamily: FONT, color: TEXT },
    })),
    grid: places.map(({ left, top, width, bars }) => ({
      left: left + NAMES_WIDTH,
      top: top + TITLE_HEIGHT - 14,
      width: width - NAMES_WIDTH - VALUES_WIDTH,
      height: BAR_HEIGHT * bars.length,
    })),
    xAxis: places.map((_, gridIndex) => ({ type: 'value', gridIndex, show: false, min: 0 })),
    yAxis: places.map(({ bars }, gridIndex) => ({
      type: 'category',
      gridIndex,
      inverse: true, // the first on top
      data: bars.map(({ name }) => name),
      axisLine: { show: false },
      axisTick: { show: false },
      axisLabel: { fontSize: 13, color: TEXT, interval: 0 },
    })),
    series: places.map(({ bars }, index) => ({
      type: 'bar',
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
      data: bars.map(({ value, isOurs }) => ({ value, itemStyle: { color: isOurs ? OURS : OTHERS } })),
    })),
  }
}
