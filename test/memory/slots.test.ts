import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as slots from '#millrace/memory/slots.js'

test('the map of a ring of slots is the one that the addon was built by', () => {
  const { Op, ...map } = slots
  assert.equal(map, {
    ANSWERED: 16,
    BEGUN: 17,
    DONE: 18,
    SLOTS_AT: 64,
    SLOTS: 1024,
    SLOT_BITS: 4,
    SLOT_WORDS: 16,
    OP: 0,
    LO: 1,
    HI: 2,
    COST: 3,
    EACH: -1,
    WAY: 4,
    CHARGED_TICK: 5,
    REFUNDS: 6,
    LIMIT: 7,
    NUMBER: 4,
    RETRY_AFTER_MS: 5,
    RESET_MS: 6,
    REMAINING: 14,
    OUTCOME: 15,
  })
  assert.equal(Object.values(Op), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
})

test('no two words of a request or of an answer are one, and none of what says whose it is is written over', () => {
  const { OP, LO, HI, COST, WAY, CHARGED_TICK, REFUNDS, LIMIT, REMAINING, OUTCOME } = slots
  const words = [OP, LO, HI, COST, WAY, CHARGED_TICK, REFUNDS, LIMIT, REMAINING, OUTCOME]
  const doubles = [slots.NUMBER, slots.RETRY_AFTER_MS, slots.RESET_MS]
  const taken = [...words, ...doubles.flatMap((at) => [2 * at, 2 * at + 1])]
  assert.is(new Set(taken).size, taken.length)
  assert.ok(taken.every((at) => at >= 0 && at < slots.SLOT_WORDS))
  assert.is(slots.SLOTS & (slots.SLOTS - 1), 0)
})

test.run()
