import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Benchmark, type Figures, figureOf } from '../benchmark.js'
import { median } from '../statistics.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
/** Each script runs so often, in turns with the others. */
const TURNS = 15
const QUICK_TURNS = 5
const SCRIPTS = {
  empty: '',
  millrace: "require('millrace')",
  express: "require('millrace/express')",
  redis: "require('millrace/redis')",
  peer: "require('express-rate-limit')",
}
type Name = keyof typeof SCRIPTS
const NAMES = Object.keys(SCRIPTS) as Name[]

/** The processor time of a fresh process until its script has run, and the modules that it has loaded. */
function measureOnce(name: Name): { ms: number; modules: number } {
  const tell = `const { user, system } = process.cpuUsage()
    console.log(JSON.stringify({ ms: (user + system) / 1e3, modules: Object.keys(require.cache).length }))`
  const out = execFileSync(process.execPath, ['-e', `${SCRIPTS[name]}\n${tell}`], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  return JSON.parse(out)
}

/** The medians of processor time over that of an empty script, and the counts of modules. */
function measureAll(turns: number): Figures {
  const times = new Map(NAMES.map((name) => [name, [] as number[]]))
  const figures: Record<string, number> = {}
  for (let turn = 0; turn < turns; turn++) {
    for (const name of NAMES) {
      const { ms, modules } = measureOnce(name)
      times.get(name)!.push(ms)
      figures[`${name}Modules`] = modules
    }
  }
  const empty = median(times.get('empty')!)
  for (const name of NAMES) figures[`${name}Ms`] = median(times.get(name)!) - empty
  return figures
}

const ALL = 'in turns'
const shown = NAMES.filter((name) => name !== 'empty')

export const requiring: Benchmark = {
  title: 'require() in a fresh process, in turns: Millrace, two of its entries, express-rate-limit',
  units: Object.fromEntries(
    shown.flatMap((name) => [
      [`${name}Ms`, `${SCRIPTS[name]}: milliseconds of processor time over an empty script`],
      [`${name}Modules`, 'modules loaded'],
    ]),
  ),
  contenders: [{ name: ALL, measure: ({ quick }) => measureAll(quick ? QUICK_TURNS : TURNS) }],
  goals: [
    {
      target: 'P13',
      label: "require('millrace') / require('express-rate-limit'), over an empty script",
      unit: 'x',
      value: (round) => figureOf(round, ALL, 'millraceMs') / figureOf(round, ALL, 'peerMs'),
      atMost: 1.5,
    },
  ],
}
