// run: once, also-full, also-long
// What a blocked key shows, whatever it has counted, by whatever call.

import type { Decision } from 'millrace'
import * as assert from 'uvu/assert'
import type { Either } from '../engines/both.js'
import type { TestClock } from './places.js'
import { TWO } from './several-rules.js'
import { type Claims, conform, FIVE } from './suite.js'

const HOURS_MS = 2 * 3_600_000

/** What a key has counted before its block begins. */
const COUNTED: Readonly<Record<string, (limiter: Either, clock: TestClock) => Promise<unknown>>> = {
  nothing: async () => undefined,
  'its limit': async (limiter) => limiter.check('key', 5),
  'more than its limit': async (limiter) => limiter.penalize('key', 9),
  'nothing after a refund': async (limiter) => limiter.refund(await limiter.check('key', 2)),
  'nothing after a while': async (limiter, clock) => {
    await limiter.check('key', 2)
    clock.advance(HOURS_MS)
  },
}

/** A block lasts at most until the end of the next sixteenth of a second. */
const BLOCKS_MS = [1, 20_000, 86_400_000, Number.POSITIVE_INFINITY]
const LONGER_MS = 63

const ASKED: readonly ((limiter: Either) => Decision | Promise<Decision>)[] = [
  (limiter) => limiter.peek('key'),
  (limiter) => limiter.peek('key', 0),
  (limiter) => limiter.peek('key', 6),
  (limiter) => limiter.check('key', 0),
  (limiter) => limiter.check('key', 6),
  (limiter) => limiter.check('key'),
  async (limiter) => (await limiter.reserve('key', 1)).decision,
]

const CLAIMS: Claims = {
  'lasts as long as the first time when it is begun again to the same end': async ({
    limiter,
    make,
    clock,
  }) => {
    for (const each of [limiter, make(TWO)]) {
      for (const end of ['unblock', 'clear', 'nothing'] as const) {
        for (let left = 20_000; left > 0; left -= 5_000) {
          await each.block('key', left)
          assert.is((await each.check('key')).retryAfterMs, left, end)
          if (end !== 'nothing') {
            await each[end]('key')
            await each.block('key', left)
            assert.is((await each.check('key')).retryAfterMs, left, end)
            await each[end]('key')
          }
          clock.advance(5_000)
        }
        await each.unblock('key')
        clock.advance(HOURS_MS)
      }
    }
  },
  'has its whole limit again when its block has ended and nothing counts': async ({
    limiter,
    make,
    clock,
  }) => {
    const limiters = { limiter, several: make(TWO), shadow: make({ ...FIVE, shadow: true }) }
    for (const [kind, each] of Object.entries(limiters)) {
      for (const [counted, count] of Object.entries(COUNTED)) {
        await count(each, clock)
        const emptyMs = (await each.peek('key')).rules.map(({ resetMs }) => resetMs)
        for (const blockMs of BLOCKS_MS) {
          await each.block('key', blockMs)
          for (const ask of ASKED) {
            const { rules } = await ask(each)
            for (const [i, { resetMs }] of rules.entries()) {
              const says = `${kind}, ${counted}, blocked for ${blockMs} ms, ${ask}: ${resetMs}, not ${emptyMs[i]}`
              assert.ok(resetMs >= Math.max(blockMs, emptyMs[i]!), says)
              assert.ok(resetMs <= Math.max(blockMs + LONGER_MS, emptyMs[i]!), says)
            }
          }
          await each.unblock('key')
        }
        await each.clear('key')
      }
    }
  },
}

conform([[CLAIMS, FIVE]])
