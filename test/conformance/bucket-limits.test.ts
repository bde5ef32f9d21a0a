// run: once, also-full, also-long
// Limits of a bucket that do not divide its parts: exactly so many at once, by any way that a limit comes.

import type { CheckOptions } from 'millrace'
import * as assert from 'uvu/assert'
import type { Either } from '../engines/both.js'
import { unitsIn } from './algorithms.js'
import { type Claims, conform, type Subject } from './suite.js'

/** No part of a full bucket is a whole number of tokens by most of these. All are of whole tokens with a burst. */
const RULES = [
  { limit: 10, window: '1s' },
  { limit: 100, window: '1m' },
  { limit: 1_000, window: '10s' },
  { limit: 7, window: '2s', burst: 14 },
] as const
const LIMITS = [1, 2, 3, 6, 9, 11, 33, 61, 171]

type Rule = (typeof RULES)[number]
const burstBy = (rule: Rule, limit: number): number =>
  'burst' in rule ? (limit * rule.burst) / rule.limit : limit

/** Takes all that a key has left, in these costs and at last one by one or in one. Each decision must be the right one. */
async function spend(
  limiter: Either,
  key: string,
  most: number,
  costs: readonly number[],
  options?: CheckOptions,
) {
  let left = most
  const take = async (cost: number) => {
    const { allowed, limit, remaining } = await limiter.check(key, cost, options)
    assert.is(allowed, cost <= left, `${cost} of ${left} by ${most}`)
    if (allowed) left -= cost
    assert.equal([limit, remaining], [most, left])
  }
  for (const cost of costs) await take(cost)
  for (let i = 0; i < 12 && left > 0; i++) await take(1)
  await take(left + 1)
  await take(left)
  await take(1)
}

/** In ones, in thirds, all at once, and most of it at once. */
const costsFor = (most: number): readonly (readonly number[])[] => [
  [],
  [Math.ceil(most / 3), Math.ceil(most / 3), Math.ceil(most / 3)],
  [most],
  [most - 1, 2],
]

async function eachLimit(
  { make }: Subject,
  act: (limiter: Either, rule: Rule, limit: number) => Promise<void>,
): Promise<void> {
  for (const [i, rule] of RULES.entries()) {
    const limiter = make({ ...rule, name: `rule ${i}`, maxKeys: 200 })
    for (const limit of LIMITS) await act(limiter, rule, limit)
  }
}

/** The first milliseconds at which a refused cost is admitted are those that its refusal has told. */
async function waitsExactly(
  { clock }: Subject,
  limiter: Either,
  key: string,
  cost: number,
  options?: CheckOptions,
) {
  const { retryAfterMs } = await limiter.check(key, cost, options)
  clock.advance(retryAfterMs - 1)
  assert.is((await limiter.peek(key, cost, options)).retryAfterMs, 1)
  clock.advance(1)
  assert.ok((await limiter.check(key, cost, options)).allowed)
}

const CLAIMS: Claims = {
  'a bucket given any limit by a call admits just that at once, and says what is left': async (subject) => {
    await eachLimit(subject, async (limiter, rule, limit) => {
      const most = burstBy(rule, limit)
      for (const [i, costs] of costsFor(most).entries())
        await spend(limiter, `${limit} ${i}`, most, costs, { limit })
    })
  },
  'a bucket given any limit by update admits just that at once, alone and in a batch': async (subject) => {
    await eachLimit(subject, async (limiter, rule, limit) => {
      await limiter.update(limiter.rule.name, { limit })
      const most = burstBy(rule, limit)
      for (const [i, costs] of costsFor(most).entries()) await spend(limiter, `${limit} ${i}`, most, costs)
      const keys = Array.from({ length: 40 }, () => `${limit} batch`)
      const { allowed, remaining } = await limiter.checkMany(keys, undefined, { remaining: true })
      const expected = keys.map((_, i) => Math.max(0, most - i - 1))
      assert.equal([...remaining!], expected)
      assert.is([...allowed].filter(Boolean).length, Math.min(most, keys.length))
      await limiter.clear(`${limit} batch`)
    })
  },
  'a bucket given a limit for which its parts are too coarse admits that in one request, and never more':
    async (subject) => {
      const { limiter, clock } = subject
      for (const limit of [900, 5_000, 100_000]) {
        for (const costs of [[limit], [Math.ceil(limit / 2)], Array.from({ length: 20 }, () => 1)]) {
          let used = 0
          for (const cost of costs) if ((await limiter.check('key', cost, { limit })).allowed) used += cost
          assert.is(
            used,
            costs.reduce((sum, cost) => sum + cost),
          )
          const { remaining } = await limiter.peek('key', 0, { limit })
          assert.not((await limiter.check('key', remaining + 1, { limit })).allowed)
          if (remaining > 0) assert.ok((await limiter.check('key', remaining, { limit })).allowed)
          assert.ok(used + remaining <= limit)
          for (const other of [limit, 3, undefined])
            assert.not((await limiter.check('key', 1, other ? { limit: other } : {})).allowed)
          clock.advance(limiter.rule.windowMs)
        }
      }
    },
  'a wait by any limit of a bucket is exact': async (subject) => {
    await eachLimit(subject, async (limiter, rule, limit) => {
      const most = burstBy(rule, limit)
      assert.ok((await limiter.check('key', most, { limit })).allowed)
      for (const cost of [1, Math.ceil(most / 2), most])
        await waitsExactly(subject, limiter, 'key', cost, { limit })
      subject.clock.advance(4 * limiter.rule.windowMs)
    })
  },
  'by any limit of a bucket, no more tokens are used in any time than it has and than come': async (
    subject,
  ) => {
    const { clock, make } = subject
    for (const [rule, limit] of [
      [RULES[0], 3],
      [RULES[1], 7],
    ] as const) {
      const limiter = make({ ...rule, name: `of ${limit}`, maxKeys: 20 })
      const { windowMs } = limiter.rule
      const used: [atMs: number, units: number][] = []
      for (let step = 0; step < 60; step++) {
        const cost = (step % limit) + 1
        if ((await limiter.check('key', cost, { limit })).allowed) used.push([clock.now(), cost])
        clock.advance(step % 11 === 0 ? windowMs : Math.ceil(windowMs / 23))
      }
      for (const [i, [fromMs]] of used.entries()) {
        let sum = 0
        for (const [toMs, units] of used.slice(i)) {
          sum += units
          assert.ok(sum <= limit + ((toMs - fromMs) * limit) / windowMs, `${sum} in ${toMs - fromMs} ms`)
        }
      }
    }
  },
  'a bucket used by several limits counts each as its part, and never a token more than it has': async ({
    make,
    clock,
    times,
  }) => {
    const limiter = make({ ...RULES[0], name: 'of ten', maxKeys: 20 })
    const { rule } = limiter
    const parts = unitsIn(rule.windowMs, rule.limit)
    const charges: [afterMs: number, units: number, limit: number][] = []
    const startMs = clock.now()
    let level = 0 // the least that is used, in parts
    for (let step = 0; step < 80; step++) {
      const limit = [3, 10, 7, 6, 343][(step * step) % 5]!
      const cost = (step % Math.min(limit, 4)) + 1
      const used = () => times({ ...rule, limit }).used(...charges)
      const { allowed, remaining } = await limiter.check('key', cost, { limit })
      assert.is(allowed, used() + cost <= limit)
      if (allowed) {
        charges.push([clock.now() - startMs, cost, limit])
        level += (cost * parts) / limit
        assert.ok(
          level < parts + parts / limit,
          `${level} of ${parts} parts used, a token is ${parts / limit}`,
        )
      }
      assert.is(remaining, Math.max(0, limit - used()))
      if (step % 3 === 0) {
        const ms = 40 + step
        clock.advance(ms)
        level = Math.max(0, level - (ms * parts) / rule.windowMs)
      }
    }
  },
  'what is reserved, refunded and penalized by another limit of a bucket is counted by it': async (
    subject,
  ) => {
    await eachLimit(subject, async (limiter, rule, limit) => {
      const most = burstBy(rule, limit)
      const key = `${limit} kept`
      const decision = await limiter.check(key, most, { limit })
      assert.is(await limiter.refund(decision), most)
      const reserved = await limiter.reserve(key, most, { limit })
      assert.equal([reserved.decision.allowed, await reserved.commit(1)], [true, 1 - most])
      assert.is((await limiter.peek(key, most, { limit })).remaining, most - 1)
      await limiter.update(limiter.rule.name, { limit })
      await limiter.penalize(key, most - 1)
      assert.equal([await limiter.usage(key), (await limiter.peek(key)).remaining], [most, 0])
      assert.is(await limiter.refund(key, most), most)
      assert.is(await limiter.usage(key), 0)
    })
  },
}

const JOINED: Claims = {
  'a group whose member is a bucket admits each limit of a call at once': async (subject) => {
    await eachLimit(subject, async (limiter, rule, limit) => {
      const most = burstBy(rule, limit)
      const both = subject.group({ limiter })
      for (let i = 0; i < Math.min(most, 12); i++) {
        const cost = i === 0 ? Math.max(1, most - 11) : 1
        const { allowed, remaining } = await both.check({ limiter: `${limit}` }, cost, {
          limit: { limiter: limit },
        })
        assert.equal([allowed, remaining], [true, Math.min(most, 12) - i - 1])
      }
      assert.not((await both.check({ limiter: `${limit}` }, 1, { limit: { limiter: limit } })).allowed)
    })
  },
}

const ofBuckets = ({ countsInParts }: Subject['algorithm']) =>
  countsInParts ? { limit: 10, window: '1s', maxKeys: 20 } : undefined

// Limiters with shards join no group, and the first algorithm is no bucket.
conform(
  [
    [CLAIMS, ofBuckets],
    [JOINED, ofBuckets],
  ],
  undefined,
  undefined,
  undefined,
  [],
)
