// run: typescript, first, full, also-long
// Changes of the window in which a thread may die at any step, with one preemption. The full tests take
// every 60th scenario, `npm run test:long` all.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { shareOf } from '../size.js'
import { playableCopy, SMALL_SIZES } from './copy.js'
import { changing } from './scenarios/changing.js'
import { scenarios } from './scenarios/index.js'
import { shrink } from './schedule.js'
import { search } from './search.js'

const built = await playableCopy(SMALL_SIZES)
for (const name of shareOf(Object.keys(changing), 60)) {
  const scenario = scenarios[`${name}; one dies`]!
  test(`nothing forbidden, also if a thread dies: ${name}`, () => {
    const { wrong, schedule, ends, cut } = search(built, scenario, { preemptions: 1 })
    assert.is(wrong, undefined, `by ${schedule && shrink(built, scenario, schedule, wrong!)}`)
    assert.is(cut, 0)
    assert.ok(ends > 0)
  })
}

test.run()
