// run: typescript, first, full, also-long
// Mutation tests: one deliberate mistake at a time in the built code, which the explorer or a test must
// catch. The full tests take every 25th mistake, `npm run test:long -- mutants` all.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { playableCopy, SMALL_SIZES } from '../explore/copy.js'
import { scenarios } from '../explore/scenarios/index.js'
import { replay, Schedule, shrink } from '../explore/schedule.js'
import { search } from '../explore/search.js'
import { shareOf } from '../size.js'
import { all } from './all.js'
import { isCaughtBy } from './package-copy.js'

const mutants = shareOf(Object.entries(all), 25)

/** A mistake that needs more preemptions has no scenario yet that shows it quickly. */
const MOST_PREEMPTIONS = 3

for (const [name, mutant] of mutants) {
  if ('test' in mutant) {
    test(`a test catches: ${name}`, async () => {
      assert.ok(await isCaughtBy(mutant.test, mutant.edits), `${mutant.test} passes`)
    })
    continue
  }
  test(`the explorer catches, with a schedule that fails again when replayed: ${name}`, async () => {
    const built = await playableCopy([...SMALL_SIZES, ...mutant.edits])
    const scenario = scenarios[mutant.scenario]!
    for (let preemptions = 1; preemptions <= MOST_PREEMPTIONS; preemptions++) {
      const { wrong, schedule } = search(built, scenario, { preemptions })
      if (wrong === undefined) continue
      const least = shrink(built, scenario, schedule!, wrong)
      assert.ok(least.length <= schedule!.length)
      const again = replay(built, scenario, Schedule.parse(String(least)))
      assert.is(again?.split(':')[0], wrong.split(':')[0])
      return
    }
    assert.unreachable(`nothing forbidden in '${mutant.scenario}'`)
  })
}

for (const file of new Set(mutants.flatMap(([, mutant]) => ('test' in mutant ? [mutant.test] : [])))) {
  test(`passes without a mistake: ${file}`, async () => {
    assert.not(await isCaughtBy(file, []))
  })
}

test.run()
