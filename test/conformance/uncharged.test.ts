// run: once, also-full, also-long
// What charges nothing, or gives back all that it has charged, begins no window: a later charge shows what it would show
// without it.

import * as assert from 'uvu/assert'
import type { Either } from '../engines/both.js'
import { type Claims, conform, FIVE, listsKeys, type Subject } from './suite.js'

/** After this many milliseconds, no charge by the minute counts. */
const FREE_MS = 180_000
const LATER_MS = 20_000

/** None of them leaves a charge or a block. */
const UNCHARGED: Readonly<Record<string, (limiter: Either, subject: Subject) => Promise<unknown>>> = {
  nothing: async () => undefined,
  'a look': async (limiter) => limiter.peek('key', 5),
  'a cost of 0': async (limiter) => limiter.check('key', 0),
  'a cost above the limit': async (limiter) => limiter.check('key', 6),
  'the end of no block': async (limiter) => limiter.unblock('key'),
  'a block that is ended': async (limiter) => {
    await limiter.block('key', 100_000)
    await limiter.unblock('key')
  },
  'a block that ends': async (limiter, { clock }) => {
    await limiter.block('key', 100)
    clock.advance(200)
  },
  'a refusal by a block': async (limiter) => {
    await limiter.block('key', 100_000)
    assert.not((await limiter.check('key')).allowed)
    await limiter.unblock('key')
  },
  'a decision that is given back': async (limiter) => limiter.refund(await limiter.check('key', 2)),
  'a refund by key': async (limiter) => {
    await limiter.check('key', 2)
    await limiter.refund('key', 2)
  },
  'a reservation that is cancelled': async (limiter) => (await limiter.reserve('key', 2)).cancel(),
  'a batch that is cleared': async (limiter) => {
    await limiter.checkMany(['key', 'other', 'key'])
    await limiter.clear('key')
  },
  'clearing all keys': async (limiter, { place }) => {
    await limiter.check('key')
    await (listsKeys(place) ? limiter.clearAll() : limiter.clear('key'))
  },
}

/** Asserts what a charge of `cost` units shows after it, of a new key and of one that has been used. */
async function tryEach(
  subject: Subject,
  uncharged: typeof UNCHARGED,
  make: () => Either = () => subject.make(),
  cost = 5,
): Promise<void> {
  const { clock, times } = subject
  const startMs = clock.now()
  const limiter = make()
  for (const [name, act] of Object.entries(uncharged)) {
    for (const isUsed of [false, true]) {
      if (isUsed) await limiter.check('key', cost)
      clock.advance(FREE_MS)
      await act(limiter, subject)
      clock.advance(LATER_MS)
      const { allowed, rules } = await limiter.check('key', cost)
      assert.ok(allowed, `${name}, ${isUsed ? 'used before' : 'new'}`)
      const expected = times(limiter.rules[0]).untilEmpty([clock.now() - startMs, cost])
      assert.is(rules[0]!.resetMs, expected, `${name}, ${isUsed ? 'used before' : 'new'}`)
      clock.advance(FREE_MS)
      await limiter.clear('key')
      clock.advance(FREE_MS)
    }
  }
}

const CLAIMS: Claims = {
  'begins no window without a charge': (subject) => tryEach(subject, UNCHARGED),
  'begins no window by a refusal of another member of a group': async (subject) => {
    const full = subject.make({ limit: 1, window: '1h', maxKeys: 20 })
    await full.block('full', Number.POSITIVE_INFINITY)
    const refused = async (limiter: Either) => {
      const both = subject.group({ limiter, full })
      assert.not((await both.check({ limiter: 'key', full: 'full' }, 2)).allowed)
    }
    await tryEach(subject, { 'the refusal of another member': refused })
  },
  'begins no window by a refusal of another rule': async (subject) => {
    const minute = { name: 'minute', limit: 5, window: '1m', granularity: '1s' }
    const second = { name: 'second', limit: 4, window: '1s', granularity: '100ms' }
    const make = () => subject.make({ rules: [minute, second], maxKeys: 20 })
    const refused = async (limiter: Either) => assert.is((await limiter.check('key', 5)).rule, 'second')
    await tryEach(subject, { 'the refusal of another rule': refused }, make, 4)
  },
}

// Limiters with shards join no group.
conform([[CLAIMS, FIVE]], /^sliding (log|counter).* group/, / group/, undefined, ['iovalkey'])
