// run: typescript, first, also-full
// Scenarios with one preemption; in full size all of them, also each with a death, and small ones with any number of preemptions.
// `npm run explore` goes on from there. Then random schedules on full-size shapes.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { size, sized } from '../size.js'
import { playableCopy, SMALL_BLOCKS, waysPerSet } from './copy.js'
import { scenarios } from './scenarios/index.js'
import { replay, Schedule, shrink } from './schedule.js'
import { search } from './search.js'
import { walk } from './walk.js'

const SCHEDULES = sized({ quick: 300, full: 1_500 })
const SEED = 20261121
/** The quick size has nodes of one kind: block sums. */
const OF_OTHER_NODES = /^(block sums on two levels|a Fenwick tree): /

const small = await playableCopy([waysPerSet(1), ...SMALL_BLOCKS])
const full = await playableCopy()

for (const [name, scenario] of Object.entries(scenarios)) {
  if (size === 'quick' && (scenario.deaths || OF_OTHER_NODES.test(name))) continue
  test(`nothing forbidden: ${name}`, () => {
    const ofSmall = sized({ quick: 1, full: Number.POSITIVE_INFINITY })
    const preemptions = scenario.deaths ? 0 : scenario.small ? ofSmall : 1
    const { wrong, schedule, schedules, ends, cut } = search(small, scenario, { preemptions })
    assert.is(wrong, undefined, `by ${schedule && shrink(small, scenario, schedule, wrong!)}`)
    assert.is(cut, 0)
    assert.ok(schedules > 0 && ends > 0)
  })
}

test('nothing forbidden in random schedules on full-size shapes', () => {
  const { wrong, scenario, schedule, schedules, operations } = walk(full, {
    schedules: SCHEDULES,
    seed: SEED,
  })
  assert.is(wrong, undefined, `by ${schedule} in ${JSON.stringify(scenario)}`)
  assert.is(schedules, SCHEDULES)
  assert.ok(operations > 100 * SCHEDULES)
})

test('the same random schedules from the same seed', () => {
  const again = () => walk(full, { schedules: 50, seed: 7 })
  assert.equal(again(), again())
})

test('a schedule is read as it is printed, and its moves of one thread are joined', () => {
  const schedule = Schedule.parse('0*2 0*3 clock 1*4 0+ 1*1')
  assert.is(String(schedule), '0*5 clock 1*4 0+ 1*1')
  assert.is(String(Schedule.parse(String(schedule))), String(schedule))
  assert.is(String(Schedule.parse('')), '')
  assert.throws(() => Schedule.parse('0*2 then 1*3'), /no move of a schedule: then/)
})

test('a schedule of more moves than a scenario has goes through, and what it leaves undone is done', () => {
  const scenario = scenarios['two admit on the last unit']!
  assert.is(replay(small, scenario, Schedule.parse('0*1000 0*5 clock clock 1*3')), undefined)
  assert.is(replay(small, scenario, Schedule.parse('')), undefined)
})

test('with the bound on preemptions lifted, more states are seen', () => {
  const scenario = scenarios['three admit on the last unit']!
  const states = [0, 1, 2, 3].map((preemptions) => search(small, scenario, { preemptions }).states)
  assert.equal(
    states,
    states.toSorted((a, b) => a - b),
  )
  assert.ok(states[3]! > 10 * states[1]!)
})

test.run()
