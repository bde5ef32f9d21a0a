// Explores the built code: `npm run explore` all of it, `npm run explore -- NAME` the scenarios whose names match.
import { parseArgs } from 'node:util'
import { random } from '../algorithms/oracle.js'
import { type Built, playableCopy, waysPerSet } from './copy.js'
import type { Scenario } from './scenario.js'
import { scenarios } from './scenarios/index.js'
import { explain, Schedule, shrink } from './schedule.js'
import { type Found, search } from './search.js'
import { walk } from './walk.js'

const USAGE = `npm run explore -- [NAME] [options]

  NAME               only scenarios whose names match this regular expression
  --preemptions N    how often a schedule may leave a thread in the middle of something (3; small scenarios:
                     any number of times)
  --deaths N         the same, where a thread may die (1)
  --walks N          random schedules on full-size shapes (200000)
  --seed N           of the random ones (another one each time)
  --schedule TEXT    plays this schedule of the one scenario NAME and prints every operation`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    preemptions: { type: 'string', default: '3' },
    deaths: { type: 'string', default: '1' },
    walks: { type: 'string', default: '200000' },
    seed: { type: 'string' },
    schedule: { type: 'string' },
    help: { type: 'boolean' },
  },
})

const count = (n: number) => n.toLocaleString('en-US')
let toldAt = performance.now()
/** One line that is written over on a terminal; anywhere else a line a minute. */
const progress = (text: string) => {
  if (process.stderr.isTTY)
    process.stderr.write(`\r\x1b[K${text.slice(0, (process.stderr.columns ?? 80) - 1)}`)
  else if (text !== '' && performance.now() - toldAt > 60_000) {
    toldAt = performance.now()
    process.stderr.write(`${text}\n`)
  }
}

if (values.help) console.log(USAGE)
else if (values.schedule !== undefined) await play(positionals[0] ?? '', values.schedule)
else await exploreAll(new RegExp(positionals[0] ?? ''))

async function play(name: string, text: string): Promise<void> {
  const scenario = scenarios[name]
  if (scenario === undefined) throw new Error(`no scenario is called '${name}'`)
  explain(await playableCopy([waysPerSet(1)]), scenario, Schedule.parse(text), console.log)
}

async function exploreAll(pattern: RegExp): Promise<void> {
  const built = await playableCopy([waysPerSet(1)])
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
  const walks =
    pattern.source === '(?:)' && Number(values.walks) > 0 ? await walkAbout(Number(values.walks)) : 0
  if (walks < 0) wrong++
  const random = walks > 0 ? ` and ${count(walks)} random ones` : ''
  console.log(
    `${count(schedules)} schedules of ${names.length} scenarios (${count(states)} states)${random}: ${wrong} forbidden outcomes`,
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
    onProgress: ({ states }) => progress(`${place}: ${name}, ${count(states)} states, ${seconds()}`),
  })
  progress('')
  const preemptions = bound === Number.POSITIVE_INFINITY ? 'any number of' : bound
  const cut = found.cut > 0 ? `, ${found.cut} cut` : ''
  console.log(
    `${found.wrong === undefined ? 'ok   ' : 'WRONG'} ${name}: ${count(found.schedules)} schedules, ${count(found.states)} states, ${preemptions} preemptions${cut}, ${seconds()}`,
  )
  if (found.wrong !== undefined) {
    const least = shrink(built, scenario, found.schedule!, found.wrong)
    console.log(`      ${found.wrong}\n      npm run explore -- '${name}' --schedule '${least}'`)
  }
  return found
}

function boundOf({ small, deaths }: Scenario): number {
  if (deaths) return Number(values.deaths)
  return small ? Number.POSITIVE_INFINITY : Number(values.preemptions)
}

/** How many random schedules held; -1 where one did not. */
async function walkAbout(schedules: number): Promise<number> {
  const built = await playableCopy()
  const seed = Number(values.seed ?? Math.floor(random(Date.now())() * 2 ** 31))
  console.log(`random schedules, seed ${seed}`)
  const found = walk(built, {
    schedules,
    seed,
    onProgress: (f) => progress(`${count(f.schedules)} random schedules`),
  })
  progress('')
  if (found.wrong === undefined) return found.schedules
  const { scenario, schedule, wrong } = found
  console.log(`WRONG ${wrong}\n${JSON.stringify(scenario)}\n${shrink(built, scenario!, schedule!, wrong)}`)
  return -1
}
