import { test } from 'uvu'
import * as assert from 'uvu/assert'
import slots from '#millrace/memory/request-ring.js'

test('the map of a request ring is the one that the addon was built with', () => {
  const { Op, requestOf, ...map } = slots
  assert.equal(map, {
    REPLIED: 16,
    ACCEPTED: 17,
    COMPLETED: 18,
    REQUESTS_AT: 64,
    REQUEST_BITS: 2,
    SLOTS_AT: 4160,
    SLOTS: 1024,
    SLOT_BITS: 4,
    SLOT_WORDS: 16,
    OP: 0,
    LO: 1,
    HI: 2,
    COST: 3,
    EACH: -1,
    WAY: 0,
    CHARGED_TICK: 1,
    REFUNDS: 2,
    LIMIT: 3,
    NUMBER: 3,
    RETRY_AFTER_MS: 4,
    RESET_MS: 5,
    REMAINING: 4,
    OUTCOME: 5,
    RULE_LIMIT: 0,
  })
  assert.equal(Object.values(Op), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14])
})

test('all words of all requests are distinct', () => {
  const { OP, LO, HI, COST, requestOf, SLOTS, SLOTS_AT, SLOT_WORDS, REQUESTS_AT } = slots
  assert.equal([OP, LO, HI, COST].sort(), [0, 1, 2, 3])
  for (let i = 0; i < SLOTS; i++) assert.is(requestOf(SLOTS_AT + i * SLOT_WORDS), REQUESTS_AT + 4 * i)
  assert.is(REQUESTS_AT + 4 * SLOTS, SLOTS_AT)
  assert.equal([SLOTS_AT % 16, SLOT_WORDS % 16], [0, 0], 'slots begin on cache lines and on whole doubles')
  assert.ok(Math.max(slots.REPLIED, slots.ACCEPTED, slots.COMPLETED) < REQUESTS_AT)
})

test('all words of a reply, and of the request of a batch in the same slot, are distinct', () => {
  const { WAY, CHARGED_TICK, REFUNDS, LIMIT, REMAINING, OUTCOME } = slots
  const words = [WAY, CHARGED_TICK, REFUNDS, LIMIT, REMAINING, OUTCOME]
  const doubles = [slots.NUMBER, slots.RETRY_AFTER_MS, slots.RESET_MS]
  const taken = [...words, ...doubles.flatMap((at) => [2 * at, 2 * at + 1])]
  assert.is(new Set(taken).size, taken.length)
  assert.ok(taken.every((at) => at >= 0 && at < slots.SLOT_WORDS))
  assert.is(slots.SLOTS & (slots.SLOTS - 1), 0)
})

test.run()
