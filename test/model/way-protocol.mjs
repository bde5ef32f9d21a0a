#!/usr/bin/env node
// Explores every interleaving of the protocol, and of those of sliding logs, fixed windows and token buckets:
//
//   npm run dev -- model                         every scenario as designed: each must hold (two hours)
//   npm run dev -- model --broken             each rule left out, in a scenario that must fail (eight minutes)
//   npm run dev -- model NAME [MISTAKE]       one scenario; a failure prints its schedule
import { explore } from './explorer.mjs'
import { explore as exploreLog } from './log.mjs'
import { logMistakes, logScenarios } from './log-scenarios.mjs'
import { explore as exploreMeter } from './meter.mjs'
import { meterMistakes, meterScenarios } from './meter-scenarios.mjs'
import { mistakes as wayMistakes, scenarios as wayScenarios } from './scenarios.mjs'

const scenarios = { ...wayScenarios, ...meterScenarios, ...logScenarios }
const mistakes = { ...wayMistakes, ...meterMistakes, ...logMistakes }
const explorerOf = (n) => {
  if (Object.hasOwn(logScenarios, n)) return exploreLog
  return Object.hasOwn(meterScenarios, n) ? exploreMeter : explore
}
const [name, variant] = process.argv.slice(2)
if (name !== undefined && name !== '--broken') checkName(name, scenarios, 'scenario')
if (variant !== undefined) checkName(variant, mistakes, 'mistake')
const run = (n, v) => {
  const t = performance.now(),
    r = explorerOf(n)(scenarios[n], v)
  const outcome = r.wrong ? `FAILS: ${r.wrong}` : r.stopped ? 'stopped, nothing found' : 'holds'
  console.log(
    `${n}${v ? ` [${v}]` : ''}: ${outcome}, ${r.states} states, ${r.ends ?? 0} ends, ${((performance.now() - t) / 1000).toFixed(1)} s`,
  )
  if (r.wrong && name && name !== '--broken') console.log(r.schedule)
  return !r.wrong && !r.stopped
}
let ok = true
if (name === '--broken')
  for (const [v, n] of Object.entries(mistakes)) {
    if (n) ok = !run(n, v) && ok
  }
else if (name) ok = run(name, variant)
else for (const n of Object.keys(scenarios)) ok = run(n) && ok
process.exit(ok ? 0 : 1)

function checkName(given, known, kind) {
  if (Object.hasOwn(known, given)) return
  console.error(`no ${kind} is called '${given}'. There are:\n  ${Object.keys(known).join('\n  ')}`)
  process.exit(2)
}
