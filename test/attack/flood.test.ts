// run: full
// The quick version of `npm run dev -- attack --part flood`.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { setsFor, WAYS_PER_SET } from '#millrace/memory/layout.js'
import { flood, HUNDREDFOLD, LIMIT, TENFOLD } from './flood.js'
import { percentiles } from './latency.js'

test("300,000 random keys gain no admission for a key at its limit, and themselves at most the table's capacity", () => {
  const keys = 300_000
  const { extra, tries, sprayedAdmitted, charged, alone, ordinary, during, rssMb } = flood(
    keys,
    HUNDREDFOLD,
    1,
    () => {},
  )
  assert.is(tries, 3_000)
  assert.is(extra, 0)
  const most = setsFor(keys / HUNDREDFOLD) * WAYS_PER_SET * LIMIT
  assert.ok(charged <= most, `${charged} of ${most}`)
  assert.ok(sprayedAdmitted > most / 2, 'the flood came as far as the limit')
  console.log(
    `a decision alone: ${percentiles(alone)}; among others: ${percentiles(ordinary)}; during: ${percentiles(during)}`,
  )
  console.log(`resident memory grew by ${(rssMb.end - rssMb.warm).toFixed(1)} MB after all ways were taken`)
})

test('the victim stays refused in a table with ten times its keys', () => {
  const { extra, tries } = flood(100_000, TENFOLD, 2, () => {})
  assert.equal([tries, extra], [1_000, 0])
})

test.run()
