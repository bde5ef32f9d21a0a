// run: addon
// Every word of a reply that the addon writes to a ring is the one that TypeScript writes.

import type { RuleOptions } from 'millrace'
import * as assert from 'uvu/assert'
import { checkRule } from '#millrace/core/rule.js'
import { OneRuleHandler } from '#millrace/engines/pool/one-rule-handler.js'
import { RingMemory } from '#millrace/engines/pool/ring-transport.js'
import { createArena } from '#millrace/memory/arena.js'
import { COST, HI, LO, OP, Op, requestOf, SLOT_WORDS } from '#millrace/memory/request-ring.js'
import { test } from './addon-test.js'
import { type Side, sideOf } from './sides.js'

const [lo, hi] = [0x1234, 0x5600]
const COSTS = [1, 3, 2]
const START_MS = 1_000_123.5
const RULES: Readonly<Record<string, RuleOptions>> = {
  'sliding window': { limit: 20, window: '1m' },
  'sliding counter': { limit: 20, window: '1m', algorithm: 'sliding-counter' },
  'sliding log': { limit: 20, window: '1m', algorithm: 'sliding-log' },
  'fixed window': { limit: 20, window: '1m', algorithm: 'fixed-window' },
  'fixed window from the first hit': { limit: 20, window: '1m', algorithm: 'fixed-window', align: 'first' },
  'token bucket': { limit: 10, window: '1m', algorithm: 'token-bucket', burst: 20 },
}

/** The slots after three requests on a key that has been charged. */
function replies(rule: RuleOptions, side: Side): Int32Array[] {
  const clock = { ms: START_MS, now: () => clock.ms }
  const memory = new RingMemory()
  const arena = createArena(checkRule(rule), 20, 'evict', START_MS)
  const handler = sideOf(
    side,
    () => new OneRuleHandler(memory, { arenas: [arena], names: ['default'] }, clock),
  )
  const request = (cursor: number, cost: number) => {
    const at = requestOf(memory.slot(cursor))
    memory.words[at + OP] = Op.CHECK
    memory.words[at + LO] = lo
    memory.words[at + HI] = hi
    memory.words[at + COST] = cost
  }
  request(0, 2)
  handler.handle(memory.slot(0), 0)
  clock.ms += 1_700.25
  COSTS.forEach((cost, i) => {
    request(1 + i, cost)
  })
  const stopped = handler.handleMany(1, 1 + COSTS.length)
  const isServed = side === 'addon' && rule.algorithm !== 'sliding-counter' // its edge is smooth
  assert.is(stopped, isServed ? 1 + COSTS.length : 1)
  for (let cursor = stopped; cursor <= COSTS.length; cursor++) handler.handle(memory.slot(cursor), cursor - 1)
  return COSTS.map((_, i) => memory.words.slice(memory.slot(1 + i), memory.slot(1 + i) + SLOT_WORDS))
}

for (const [name, rule] of Object.entries(RULES)) {
  test(`${name}: a reply has the same words`, () => {
    assert.equal(replies(rule, 'addon'), replies(rule, 'typescript'))
  })
}

test.run()
