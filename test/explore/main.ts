// Explores the built code. `npm run dev -- explore` runs all scenarios, `npm run dev -- explore NAME` those whose names
// match.
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { readFlag } from '../long-runs/flags.js'
import { inCommas, progressOn } from '../long-runs/progress.js'
import { type Built, playableCopy, SMALL_SIZES } from './copy.js'
import type { Scenario } from './scenario.js'
import { scenarios } from './scenarios/index.js'
import { explain, Schedule, shrink } from './schedule.js'
import { type Found, search } from './search.js'
import { walk } from './walk.js'

const USAGE = `npm run dev -- explore [NAME] [options]

  NAME               only the scenarios whose names match this regular expression
  --preemptions N    how often a schedule may preempt a thread in the middle of an operation (3; small
                     scenarios: no bound)
  --deaths N         the same bound for scenarios in which a thread may die (1)
  --walks N          number of random schedules on full-size shapes (200000)
  --seed N           seed of the random schedules (a new one for each run)
  --schedule TEXT    replays this schedule of the one scenario NAME and prints every operation`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    preemptions: { type: 'string' },
    deaths: { type: 'string' },
    walks: { type: 'string' },
    seed: { type: 'string' },
    schedule: { type: 'string' },
    help: { type: 'boolean' },
  },
})
const most = 2 ** 31 - 1
const preemptions = readFlag('preemptions', values.preemptions, { fallback: 3, least: 0, most: 255 })
const deaths = readFlag('deaths', values.deaths, { fallback: 1, least: 0, most: 255 })
const walks = readFlag('walks', values.walks, { fallback: 200_000, least: 0, most })
const seed = readFlag('seed', values.seed, { fallback: randomInt(most), least: 0, most })
const progress = progressOn(process.stderr)

if (values.help) console.log(USAGE)
else if (values.schedule !== undefined) await play(positionals[0] ?? '', values.schedule)
else await exploreAll(new RegExp(positionals[0] ?? ''))

async function play(name: string, text: string): Promise<void> {
  const scenario = scenarios[name]
  if (scenario === undefined) throw new Error(`no scenario is called '${name}'`)
  explain(await playableCopy(SMALL_SIZES), scenario, Schedule.parse(text), console.log)
}

async function exploreAll(pattern: RegExp): Promise<void> {
  const built = await playableCopy(SMALL_SIZES)
  const names = Object.keys(scenarios).filter((name) => pattern.test(name))
  if (names.length === 0) throw new Error(`no scenario matches ${pattern}`)
  let schedules = 0
  let states = 0
  let wrong = 0
  for (const [i, name] of names.entries()) {
    const found = exploreOne(built, name, `${i + 1} of ${names.length}`)
    schedules += found.schedules
    states += found.states
    if (found.wrong !== undefined) wrong++
  }
  const held = positionals.length === 0 && walks > 0 ? await walkRandomly() : 0
  if (held === undefined) wrong++
  const random = held ? ` and ${inCommas(held)} random ones` : ''
  console.log(
    `${inCommas(schedules)} schedules of ${names.length} scenarios (${inCommas(states)} states)${random}: ${wrong} forbidden outcomes`,
  )
  process.exitCode = wrong > 0 ? 1 : 0
}

function exploreOne(built: Built, name: string, place: string): Found {
  const scenario = scenarios[name]!
  const bound = boundOf(scenario)
  const started = performance.now()
  const seconds = () => `${((performance.now() - started) / 1000).toFixed(1)} s`
  const found = search(built, scenario, {
    preemptions: bound,
    onProgress: ({ states }) => progress.at(`${place}: ${name}, ${inCommas(states)} states, ${seconds()}`),
  })
  progress.clear()
  const times = bound === Number.POSITIVE_INFINITY ? 'any number of' : bound
  const cut = found.cut > 0 ? `, ${found.cut} cut` : ''
  console.log(
    `${found.wrong === undefined ? 'ok   ' : 'WRONG'} ${name}: ${inCommas(found.schedules)} schedules, ${inCommas(found.states)} states, ${times} preemptions${cut}, ${seconds()}`,
  )
  if (found.wrong !== undefined) {
    const least = shrink(built, scenario, found.schedule!, found.wrong)
    console.log(`      ${found.wrong}\n      npm run dev -- explore '${name}' --schedule '${least}'`)
  }
  return found
}

function boundOf(scenario: Scenario): number {
  if (scenario.deaths) return deaths
  return scenario.small ? Number.POSITIVE_INFINITY : preemptions
}

/** Runs the random schedules. Returns how many held, or undefined if one did not. */
async function walkRandomly(): Promise<number | undefined> {
  const built = await playableCopy()
  console.log(`random schedules, seed ${seed}`)
  const found = walk(built, {
    schedules: walks,
    seed,
    onProgress: ({ schedules }) => progress.at(`${inCommas(schedules)} random schedules`),
  })
  progress.clear()
  if (found.wrong === undefined) return found.schedules
  const { scenario, schedule, wrong } = found
  console.log(`WRONG ${wrong}\n${JSON.stringify(scenario)}\n${shrink(built, scenario!, schedule!, wrong)}`)
  return undefined
}
