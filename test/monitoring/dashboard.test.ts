// run: typescript
// The dashboard, by Grafana's own schema: the types of @grafana/schema, which are made from it, and which the compiler
// holds the JSON to as an object literal. So a name that the schema does not have is an error, too. (The schema has no
// type for queries of Prometheus; the one here is that of its editor. The package has no schema as JSON.)
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readText, root } from '../package/root.js'
import { DASHBOARD, queriesOf } from './dashboard.js'

const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')
const panels = '@grafana/schema/dist/esm/raw/composable'
const TYPES = `
import type { Dashboard, DataSourceRef, FieldConfig, Panel, RowPanel, VariableModel } from '@grafana/schema'
import type * as Stat from '${panels}/stat/panelcfg/x/StatPanelCfg_types.gen'
import type * as TimeSeries from '${panels}/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen'

/** What JSON has: texts in place of enumerations. */
type Json<T> = unknown extends T ? T : T extends string ? \`\${T}\`
  : T extends readonly (infer E)[] ? Json<E>[] : T extends object ? { [K in keyof T]: Json<T[K]> } : T
interface Query {
  refId: string
  datasource: DataSourceRef
  expr: string
  legendFormat: string
  instant?: true
  range?: true
}
type PanelOf<Type extends string, Options, Custom> =
  Omit<Panel, 'type' | 'options' | 'fieldConfig' | 'targets'> & Required<Pick<Panel, 'id' | 'title' | 'gridPos'>> & {
    type: Type
    options: Options
    fieldConfig: { defaults: Omit<FieldConfig, 'custom'> & { custom?: Custom }; overrides: never[] }
    targets: Query[]
  }
type Checked = Json<Omit<Dashboard, 'panels' | 'templating'> & {
  panels: (PanelOf<'stat', Stat.Options, never> | PanelOf<'timeseries', TimeSeries.Options, TimeSeries.FieldConfig> | RowPanel)[]
  templating: { list: VariableModel[] }
}>
export const dashboard: Checked = `

/** What the compiler says of a dashboard. The file is in build/, so that it finds the schema. */
function complaints(json: string): string {
  const folder = join(root, 'build', `dashboard-${process.pid}`)
  mkdirSync(folder, { recursive: true })
  try {
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    writeFileSync(join(folder, 'dashboard.ts'), `${TYPES}${json}`)
    const compilerOptions = {
      ...{ strict: true, noEmit: true, skipLibCheck: true },
      ...{ module: 'esnext', moduleResolution: 'bundler', target: 'es2022', types: [] },
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['dashboard.ts'] }))
    execFileSync(process.execPath, [tsc, '--pretty', 'false', '-p', '.'], { cwd: folder, stdio: 'pipe' })
    return ''
  } catch (error) {
    return String((error as { stdout?: Buffer }).stdout)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const text = readText(DASHBOARD)

test('the dashboard is one by the schema of Grafana', () => {
  assert.is(complaints(text), '')
})

test('a name, a value or a type that the schema does not have is found', () => {
  for (const [right, wrong] of [
    ['"schemaVersion": 39', '"schemaVersion": "39"'],
    ['"graphTooltip": 1', '"graphTooltip": 7'],
    ['"drawStyle": "line"', '"drawStyle": "lines"'],
    ['"lineWidth": 1', '"lineWidths": 1'],
    ['"type": "stat"', '"type": "state"'],
    ['"placement": "bottom"', '"placement": "below"'],
    ['"w": 12', '"width": 12'],
    ['"expr":', '"expression":'],
    ['"tags":', '"labels":'],
  ] as const) {
    assert.ok(text.includes(right), right)
    assert.match(complaints(text.replace(right, wrong)), /error TS/, wrong)
  }
})

test('panels have ids of their own, lie side by side, and every query is of metrics that there are', () => {
  interface Placed {
    readonly id: number
    readonly type: string
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  }
  const { panels } = JSON.parse(text) as { panels: readonly Placed[] }
  assert.is(new Set(panels.map(({ id }) => id)).size, panels.length)
  const fields = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, i) => `${x + (i % w)} ${y + Math.floor(i / w)}`),
  )
  assert.is(new Set(fields).size, fields.length, 'no panel covers another')
  const known = readText('docs/reference/metrics.md')
  for (const { name, query } of queriesOf('5m')) {
    for (const [metric] of query.matchAll(/\bmillrace_\w+/g))
      assert.ok(known.includes(metric.replace(/_(?:bucket|sum|count)$/, '')), `${name}: ${metric}`)
  }
})

test.run()
