// run: typescript, first, full, also-long
// Every 80th scenario with one preemption, also with a death, and the small ones with any number of preemptions: half
// a minute of processor time. `npm run test:long` runs all, and `npm run dev -- explore` allows more preemptions. Then
// random schedules on full-size shapes.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { shareOf } from '../size.js'
import { playableCopy, SMALL_SIZES } from './copy.js'
import { scenarios } from './scenarios/index.js'
import { replay, Schedule, shrink } from './schedule.js'
import { search } from './search.js'
import { walk } from './walk.js'

const SCHEDULES = 1_500
const SEED = 20261121

const small = await playableCopy(SMALL_SIZES)
const full = await playableCopy()

for (const name of shareOf(Object.keys(scenarios), 80)) {
  const scenario = scenarios[name]!
  test(`nothing forbidden: ${name}`, () => {
    const preemptions = scenario.deaths ? 0 : scenario.small ? Number.POSITIVE_INFINITY : 1
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

test('random schedules are the same for the same seed', () => {
  const again = () => walk(full, { schedules: 20, seed: 7 })
  assert.equal(again(), again())
})

test('a schedule parses as it prints, and adjacent moves of one thread are joined', () => {
  const schedule = Schedule.parse('0*2 0*3 clock 1*4 0+ 1*1')
  assert.is(String(schedule), '0*5 clock 1*4 0+ 1*1')
  assert.is(String(Schedule.parse(String(schedule))), String(schedule))
  assert.is(String(Schedule.parse('')), '')
  assert.throws(() => Schedule.parse('0*2 then 1*3'), /not a move of a schedule: then/)
})

test('a replay ignores moves beyond the end of a thread, and finishes threads that the schedule leaves unfinished', () => {
  const scenario = scenarios['two admit on the last unit']!
  assert.is(replay(small, scenario, Schedule.parse('0*1000 0*5 clock clock 1*3')), undefined)
  assert.is(replay(small, scenario, Schedule.parse('')), undefined)
})

test('a higher bound on preemptions reaches more states', () => {
  const scenario = scenarios['three admit on the last unit']!
  const states = [0, 1, 2, 3].map((preemptions) => search(small, scenario, { preemptions }).states)
  assert.equal(
    states,
    states.toSorted((a, b) => a - b),
  )
  assert.ok(states[3]! > 10 * states[1]!)
})

test.run()
