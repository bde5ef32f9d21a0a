// run: typescript, modules
// Charges that are sent again while the server does not answer, as a store sees it that rejects.

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { checkRule } from '#millrace/core/rule.js'
import { Outage } from '#millrace/remote/outage.js'
import { checkRemoteRule } from '#millrace/remote/remote-rule.js'
import { type LostCharges, Restoring } from '#millrace/remote/restoring/restoring.js'

const RULE = checkRemoteRule(checkRule({ limit: 100, window: '1m' }))
const MINUTE_MS = 60_000
const BIRTHS = [1_800_000_000_000, 1_800_000_001_000, 1_800_000_002_000] as const

/** A store that answers each call by the next of these: a birth, or an outage. */
function storeOf(answers: (number | Outage)[]) {
  const sent: LostCharges[][] = []
  let nowMs = 1_000
  let losses = 0
  const store = {
    rules: [RULE],
    nowMs: () => nowMs++,
    noteLoss: () => losses++,
    sendAgain: async (_: string, lost: readonly LostCharges[]) => {
      sent.push([...lost])
      const answer = answers.shift()!
      if (answer instanceof Outage) throw answer
      const parts = lost.map(() => [{ result: 0, mark: 7, birth: answer, ms: MINUTE_MS, left: 7 }])
      return { parts, times: { sentMs: nowMs, receivedMs: nowMs } }
    },
  }
  const restoring = new Restoring(store, 10)
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const at = () => ({ sentMs: nowMs, receivedMs: nowMs })
  /** The server charges units to a value with this birth. */
  const penalize = async (units: number, birth: number) => {
    const parts = [{ result: 0, mark: 7, birth, ms: MINUTE_MS, left: units }]
    const change = { key: 'key', units: [units], limits: undefined, parts, receipts: [], ageMs: 0 }
    restoring.changed('penalize', change, at())
    await turn()
  }
  /** The server unblocks a value with this birth: it says nothing of its units. */
  const see = async (birth: number) => {
    const parts = [{ result: 0, mark: -1, birth, ms: 0, left: 0 }]
    const change = { key: 'key', units: [0], limits: undefined, parts, receipts: [], ageMs: 0 }
    restoring.changed('unblock', change, at())
    await turn()
  }
  const units = () => sent.map((lost) => lost.reduce((sum, each) => sum + each.units[0]!, 0))
  return { restoring, penalize, see, units, losses: () => losses }
}

test('what was not sent goes with the next observation of the key', async () => {
  const { restoring, penalize, see, units } = storeOf([
    new Outage('breaker', false),
    new Outage('breaker', false),
    BIRTHS[1],
  ])
  await penalize(30, BIRTHS[0])
  for (let i = 0; i < 3; i++) await see(BIRTHS[1])
  assert.equal(units(), [30, 30, 30])
  assert.is(restoring.restored, 1)
  await see(BIRTHS[1])
  assert.is(units().length, 3, 'it has been restored')
})

test('what may have been charged is sent once for each loss', async () => {
  const { restoring, penalize, see, units } = storeOf([new Outage('late', true), BIRTHS[2]])
  await penalize(30, BIRTHS[0])
  await penalize(5, BIRTHS[1])
  assert.equal(units(), [30])
  await see(BIRTHS[1])
  assert.equal(units(), [30], 'the reply is lost, the charge may be there')
  await see(BIRTHS[2])
  assert.equal(units(), [30, 35])
  assert.is(restoring.restored, 1)
})

test('what may have been charged to a key without a value is sent again if it was not', async () => {
  const { penalize, see, units } = storeOf([new Outage('late', true), BIRTHS[2]])
  await penalize(30, BIRTHS[0])
  await see(BIRTHS[1]) // the birth that a value would have
  await see(BIRTHS[1])
  assert.equal(units(), [30])
  await see(BIRTHS[2])
  assert.equal(units(), [30, 30])
})

test('a loss while charges are sent again is one more loss', async () => {
  const { restoring, penalize, units, losses } = storeOf([BIRTHS[2], BIRTHS[2]])
  await penalize(30, BIRTHS[0])
  await penalize(5, BIRTHS[1]) // the server has lost this one, too, when the others come
  assert.equal(units(), [30, 5])
  await penalize(1, BIRTHS[2])
  assert.equal([units().length, restoring.restored, losses()], [2, 2, 2])
})

test('memory for the charges of all keys is reserved when the first one is noted', () => {
  const store = { rules: [RULE], nowMs: () => 0, noteLoss() {}, sendAgain: () => Promise.reject() }
  const reserved = () => process.memoryUsage().arrayBuffers
  const before = reserved()
  const many = Array.from({ length: 20 }, () => new Restoring(store, 1_000_000))
  assert.ok(reserved() - before < 2 ** 20)
  const parts = [{ result: 0, mark: 7, birth: 1, ms: MINUTE_MS, left: 1 }]
  const change = { key: 'key', units: [1], limits: undefined, parts, receipts: [], ageMs: 0 }
  many[0]!.changed('penalize', change, { sentMs: 0, receivedMs: 0 })
  assert.ok(reserved() - before > 4 * 2 ** 20)
})

test.run()
