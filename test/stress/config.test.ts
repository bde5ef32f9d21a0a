// run: typescript, full
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { silence } from '../long-runs/progress.js'
import { Run, summaryOf } from './config/run.js'

const KILLS = 25

test('writers on one LMDB file are killed: every acknowledged write is there, every document whole', async () => {
  const found = await new Run(KILLS, 1).run(silence)
  const summary = summaryOf(found)
  assert.equal(found.complaints, [], summary)
  assert.ok(found.kills >= KILLS && found.reopened > 0, summary)
  assert.ok(found.acknowledged > KILLS && found.cutOff > 0 && found.watched > 100, summary)
})

test.run()
