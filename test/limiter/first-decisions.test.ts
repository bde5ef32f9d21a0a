// The first decision of a limiter, of a thread, and after a change of a window: on new keys beside old ones, it holds the
// limit of each rule, and refuses no key that has room.
import { attachLimiter, createLimiter, type Limiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const LIMIT = 5
const WIDE = { limit: 1_000, window: '1h' }
const NARROW = { limit: LIMIT, window: '1h' }
/** By name: the rules, of which one has the limit. */
const RULES = {
  'one rule': [{ name: 'narrow', ...NARROW }],
  'the first of two': [
    { name: 'narrow', ...NARROW },
    { name: 'wide', ...WIDE },
  ],
  'the second of two': [
    { name: 'wide', ...WIDE },
    { name: 'narrow', ...NARROW },
  ],
  'the second of three': [
    { name: 'wide', ...WIDE },
    { name: 'narrow', ...NARROW },
    { name: 'third', ...WIDE },
  ],
  'the third of three, in a unit': [
    { name: 'wide', ...WIDE },
    { name: 'second', limit: '1MB', unit: '1KB', window: '1h' },
    { name: 'narrow', ...NARROW },
  ],
} as const

/** What happens before the new keys. Returns the limiter that decides. */
const BEFORE: Readonly<Record<string, (limiter: Limiter) => Limiter>> = {
  nothing: (limiter) => limiter,
  'a thread attaches and finds a known key': (limiter) => {
    limiter.check('old')
    const attached = attachLimiter(limiter.share())
    attached.check('old')
    return attached
  },
  'a thread attaches and finds a full key': (limiter) => {
    for (let i = 0; i <= LIMIT; i++) limiter.check('old')
    const attached = attachLimiter(limiter.share())
    attached.check('old')
    return attached
  },
  'the window changes': (limiter) => {
    limiter.check('old')
    limiter.update('narrow', { window: '2h' })
    for (let i = 0; i < 2; i++) limiter.check('old')
    return limiter
  },
  'a key is blocked and unblocked': (limiter) => {
    limiter.block('old', '1h')
    limiter.check('old')
    limiter.unblock('old')
    limiter.check('old')
    return limiter
  },
  'a key is peeked at': (limiter) => {
    limiter.check('old')
    limiter.peek('old')
    limiter.check('old')
    return limiter
  },
}

/** How the first units of a key are asked for. Returns how many are admitted. */
const FIRST: Readonly<Record<string, (limiter: Limiter, key: string) => number>> = {
  check: (limiter, key) => (limiter.check(key).allowed ? 1 : 0),
  'check of all at once': (limiter, key) => (limiter.check(key, LIMIT).allowed ? LIMIT : 0),
  checkMany: (limiter, key) => limiter.checkMany([key]).allowed[0]!,
}

for (const [rules, list] of Object.entries(RULES))
  for (const [what, before] of Object.entries(BEFORE))
    for (const [way, first] of Object.entries(FIRST))
      test(`${rules}; ${what}; ${way}: new keys have just their limit`, () => {
        const limiter = before(createLimiter({ rules: list as never, maxKeys: 1_000 }))
        for (const key of ['new', 'newer']) {
          let admitted = first(limiter, key)
          assert.ok(admitted > 0, `${key} is refused`)
          while (limiter.check(key).allowed) admitted++
          assert.is(admitted, LIMIT, key)
        }
      })

test.run()
