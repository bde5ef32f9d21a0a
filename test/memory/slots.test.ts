import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { AREAS, RingMemory, slotOfRule } from '#millrace/engines/pool/ring-transport.js'
import * as slots from '#millrace/memory/request-ring.js'

test('the map of a request ring is the one that the addon was built with', () => {
  const map = Object.entries(slots).filter(([, value]) => typeof value === 'number')
  assert.equal(Object.fromEntries(map), {
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
    REFUSING: 12,
    UNITS: 13,
    BLOCKED: 13,
    OF_ALL: 6,
    OF_RULE: 10,
    QUANTITY: 7,
    RULE_LIMIT: 0,
  })
  assert.equal(Object.values(slots.Op), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
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
  const { WAY, CHARGED_TICK, REFUNDS, LIMIT, REMAINING, OUTCOME, REFUSING, UNITS } = slots
  const words = [WAY, CHARGED_TICK, REFUNDS, LIMIT, REMAINING, OUTCOME, REFUSING, UNITS]
  const doubles = [slots.NUMBER, slots.RETRY_AFTER_MS, slots.RESET_MS, slots.QUANTITY]
  const taken = [...words, ...doubles.flatMap((at) => [2 * at, 2 * at + 1])]
  assert.is(new Set(taken).size, taken.length)
  assert.ok(taken.every((at) => at >= 0 && at < slots.SLOT_WORDS))
  assert.is(slots.SLOTS & (slots.SLOTS - 1), 0)
})

test('all words of the reply to a refusal, and of that to a batch, are distinct', () => {
  const { WAY, CHARGED_TICK, LIMIT, REMAINING, OUTCOME, REFUSING, BLOCKED, OF_ALL, OF_RULE } = slots
  const doubles = [slots.NUMBER, slots.RETRY_AFTER_MS, slots.RESET_MS, slots.QUANTITY]
  const refusal = [WAY, CHARGED_TICK, LIMIT, REMAINING, OUTCOME, REFUSING, BLOCKED]
  const taken = [...refusal, ...doubles.flatMap((at) => [2 * at, 2 * at + 1])]
  assert.is(new Set(taken).size, taken.length)
  const counts = [OF_ALL, OF_RULE].flatMap((at) => [at, at + 1, at + 2, at + 3])
  assert.is(new Set([OUTCOME, ...counts]).size, 9)
  assert.ok([...taken, ...counts].every((at) => at >= 0 && at < slots.SLOT_WORDS))
})

test('each further rule has its own slots behind the areas, and a ring of one rule has no further slots', () => {
  const { SLOTS, SLOTS_AT, SLOT_WORDS } = slots
  const one = new RingMemory().words.length
  const slotsOf = (rule: number) => [0, 1, SLOTS - 1].map((i) => slotOfRule(SLOTS_AT + i * SLOT_WORDS, rule))
  assert.equal(slotsOf(0), [SLOTS_AT, SLOTS_AT + SLOT_WORDS, SLOTS_AT + (SLOTS - 1) * SLOT_WORDS])
  for (const rules of [1, 2, 16]) {
    const { words, doubles, buffer } = new RingMemory(rules)
    assert.equal([words.length, 2 * doubles.length], Array(2).fill(one + (rules - 1) * SLOTS * SLOT_WORDS))
    assert.is(new RingMemory(buffer).words.length, words.length)
    for (let rule = 1; rule < rules; rule++) {
      const from = one + (rule - 1) * SLOTS * SLOT_WORDS
      assert.equal(slotsOf(rule), [from, from + SLOT_WORDS, from + (SLOTS - 1) * SLOT_WORDS])
    }
  }
  const lastArea = new RingMemory().area(AREAS - 1).allowed
  assert.ok(lastArea.byteOffset + lastArea.byteLength <= 4 * one)
  assert.is(one % SLOT_WORDS, 0, 'they begin on cache lines')
})

test.run()
