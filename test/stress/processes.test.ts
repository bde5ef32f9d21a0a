// run: addon, full
import * as assert from 'uvu/assert'
import { silence } from '../long-runs/progress.js'
import { test } from '../native/addon-test.js'
import { LIMIT } from './processes/job.js'
import { Run, summaryOf } from './processes/run.js'

test('four processes that share a file are killed and restarted: no window is over the limit, and the others go on', async () => {
  const found = await new Run(10, 1).run(silence)
  const summary = summaryOf(found)
  assert.equal(found.complaints, [], summary)
  assert.is(found.over, 0, summary)
  assert.ok(found.deaths > 1 && found.aloneTimes > 0, summary)
  assert.ok(found.windows > 100, summary)
  assert.is(found.fullest, LIMIT, `no window reached the limit: ${summary}`)
})

test.run()
