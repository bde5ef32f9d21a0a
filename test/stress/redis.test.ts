// run: typescript, full
import * as assert from 'uvu/assert'
import { silence } from '../long-runs/progress.js'
import { redisTest as test } from '../redis/skip.js'
import { RULES } from './redis/job.js'
import { judge, mostWithin } from './redis/judge.js'
import { runStress, summaryOf } from './redis/run.js'

const SECONDS = 10

test('four processes, limits of 1 to 10,000 in real time, scripts forgotten each second: no window is over', async () => {
  const found = await runStress(SECONDS, 1, silence)
  const summary = summaryOf(found)
  assert.equal(found.complaints, [], summary)
  assert.ok(found.scriptFlushes > 1, summary)
  for (const [i, { limit, fullest }] of found.limits.entries())
    assert.ok(fullest > limit - RULES[i]!.mostCost, `no window was full: ${summary}`)
})

test('the judge counts units that are certainly within a window, and no others', () => {
  const admission = { rule: 0, key: 0, granule: 0 }
  const log = [
    { ...admission, cost: 1, sentMs: 0, receivedMs: 3 },
    { ...admission, cost: 2, sentMs: 5, receivedMs: 6 },
    { ...admission, cost: 4, sentMs: 9, receivedMs: 12 },
    { ...admission, cost: 8, sentMs: 10, receivedMs: 16 },
  ]
  assert.equal(
    [2, 6, 7, 11, 12, 16].map((windowMs) => mostWithin(log, windowMs)),
    [2, 8, 12, 14, 14, 15],
  )
  const rule = { windowMs: 12, granules: 2, mostCost: 8 }
  const spread = log.map((each, granule) => ({ ...each, granule }))
  assert.equal(
    [15, 14, 13].map((limit) => judge({ ...rule, limit }, spread).over),
    [0, 0, 2],
    'a window of three granules, and one by the processes clock',
  )
})

test.run()
