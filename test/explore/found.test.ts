// run: typescript, full, also-long
// Bugs that the explorer found in the code, each with the number of preemptions that it needs.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { shareOf } from '../size.js'
import { playableCopy, SMALL_SIZES } from './copy.js'
import { scenarios } from './scenarios/index.js'
import { search } from './search.js'

const FOUND: [claim: string, scenario: string, preemptions: number][] = [
  [
    'a thread that was stopped for more than an hour does not move a cell back',
    'a stall of more than an hour',
    2,
  ],
  [
    'a key keeps its way while any clock still counts it',
    'a way lost and won back, beside a clock that is a granule behind',
    2,
  ],
  ['a key that comes to live in a full set is not displaced by itself', 'three insert one new key', 3],
  [
    'a decision by an older reading does not count before what a conversion has left out',
    'a check by an older reading in a converted cell',
    1,
  ],
  ['two threads that hop on in turn leave no count unswept', 'a return after exactly 256 laps', 3],
]

const built = await playableCopy(SMALL_SIZES)
for (const [claim, scenario, preemptions] of shareOf(FOUND)) {
  test(claim, () => {
    const { wrong, schedule } = search(built, scenarios[scenario]!, { preemptions })
    assert.is(wrong, undefined, `by ${schedule}`)
  })
}

test.run()
