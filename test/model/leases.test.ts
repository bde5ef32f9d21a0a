// run: typescript, first, also-full
// Leases in a model of one server and several nodes, before they are built: random runs, and a scenario for each rule.
// `npm run test:long` has a million random runs, by `leases/main.mjs`.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sized } from '../size.js'

interface Run {
  admitted: readonly { at: number; cost: number }[]
  trips: number
  wrong?: string
}
interface Scenario {
  settings: { rules: readonly { windowMs: number }[] }
  most: number
}
interface Simulation {
  run(scenario: object): Run
  fullest(admitted: Run['admitted'], windowMs: number): number
}
const folder = new URL('../../../test/model/leases/', import.meta.url)
const load = async (name: string) => import(new URL(`${name}.mjs`, folder).href)
const { run, fullest }: Simulation = await load('simulation')
const { scenarios }: { scenarios: Record<string, Scenario> } = await load('scenarios')
const { randomRun }: { randomRun(seed: number): Run } = await load('random')

/** The units in the fullest window of the first rule. */
function fullestOf(scenario: Scenario, mistake?: string): number {
  const { admitted } = run({ ...scenario, settings: { ...scenario.settings, mistake } })
  return fullest(admitted, scenario.settings.rules[0]!.windowMs)
}

for (const [mistake, scenario] of Object.entries(scenarios)) {
  test(`the fullest window has what it may, and more with this mistake: ${mistake}`, () => {
    assert.is(fullestOf(scenario), scenario.most)
    assert.ok(fullestOf(scenario, mistake) > scenario.most)
  })
}

test('no window of a random run is over', () => {
  const wrong = []
  let admitted = 0
  const runs = sized({ quick: 150, full: 2_000 })
  for (let seed = 1; seed <= runs; seed++) {
    const found = randomRun(seed)
    admitted += found.admitted.length
    if (found.wrong !== undefined) wrong.push(`run ${seed}: ${found.wrong}`)
  }
  assert.equal(wrong, [])
  assert.ok(admitted > 20 * runs)
})

test.run()
