// run: typescript, first, also-full
// The gate: mistakes put into the built code one at a time, each of which the explorer or a test must notice. Those that
// take seconds, and those that a whole test file notices, are left to the full size.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { playableCopy, SMALL_BLOCKS, waysPerSet } from '../explore/copy.js'
import { scenarios } from '../explore/scenarios/index.js'
import { replay, Schedule, shrink } from '../explore/schedule.js'
import { search } from '../explore/search.js'
import { size } from '../size.js'
import { adjusting } from './adjusting.js'
import { deciding } from './deciding.js'
import { inserting } from './inserting.js'
import type { Mutant } from './mutant.js'
import { isNoticedBy } from './package-copy.js'
import { summing } from './summing.js'
import { waiting } from './waiting.js'

const all: Readonly<Record<string, Mutant>> = {
  ...deciding,
  ...inserting,
  ...adjusting,
  ...summing,
  ...waiting,
}
const SECONDS = [
  'a way that does not settle its tick',
  'a way that settles before it looks for others',
  'a key that displaces itself',
]
const isSlow = (name: string, mutant: Mutant) => 'test' in mutant || SECONDS.includes(name)
const mutants = Object.entries(all).filter(([name, mutant]) => size === 'full' || !isSlow(name, mutant))

/** A mistake that takes more preemptions than these has no scenario yet that shows it soon. */
const MOST_PREEMPTIONS = 3

for (const [name, mutant] of mutants) {
  if ('test' in mutant) {
    test(`a test notices: ${name}`, async () => {
      assert.ok(await isNoticedBy(mutant.test, mutant.edits), `${mutant.test} passes`)
    })
    continue
  }
  test(`the explorer notices, and prints a schedule that shows it again: ${name}`, async () => {
    const built = await playableCopy([waysPerSet(1), ...SMALL_BLOCKS, ...mutant.edits])
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
  test(`without a mistake it passes: ${file}`, async () => {
    assert.not(await isNoticedBy(file, []))
  })
}

test('every slow mistake exists', () => {
  for (const name of SECONDS) assert.ok(name in all, name)
})

test.run()
