// Files of which one bit is wrong. Every call returns: it decides, refuses, or throws an error of Millrace. A
// call that does not return is ended with its file by the runner.
// run: addon, also-full, also-long
import { readFileSync, writeFileSync } from 'node:fs'
import { attachLimiter, createLimiter, type Limiter, MillraceError, type RuleOptions } from 'millrace'
import * as assert from 'uvu/assert'
import { arenasIn } from '#millrace/memory/arenas.js'
import {
  ADM,
  HEADER_WORDS,
  HI,
  LIVE,
  NAMES_AT,
  RECORDS_AT,
  STATE,
  shapeFor,
} from '#millrace/memory/layout.js'
import { test } from '../native/addon-test.js'
import { onSide } from '../native/sides.js'
import { sized } from '../size.js'
import { folder } from './processes.js'

/** Of each kind: in the long tests 10,000 files together. */
const FILES = sized({ quick: 50, full: 120, long: 910 })
const MEMORIES = sized({ quick: 25, full: 40, long: 200 })
const HOUR = 3_600_000
const at = folder()
const warnings: Error[] = []
process.on('warning', (warning) => warnings.push(warning))

/** One rule, or several, for each way in which a cell counts. */
const RULES: Record<string, RuleOptions | { rules: RuleOptions[] }> = {
  'sliding window': { limit: 5, window: HOUR },
  'smooth edge': { limit: 5, window: HOUR, edge: 'smooth' },
  'refusals that count': { limit: 5, window: HOUR, countRefused: true },
  'block sums': { limit: 5, window: HOUR, granularity: 10_000, rangeSum: 'blocks' },
  'Fenwick tree': { limit: 5, window: HOUR, granularity: 10_000, rangeSum: 'fenwick' },
  'sliding counter': { limit: 5, window: HOUR, algorithm: 'sliding-counter' },
  'sliding log': { limit: 5, window: HOUR, algorithm: 'sliding-log' },
  'fixed window': { limit: 5, window: HOUR, algorithm: 'fixed-window' },
  'token bucket': { limit: 5, window: HOUR, algorithm: 'token-bucket' },
  'leaky bucket': { limit: 5, window: HOUR, algorithm: 'leaky-bucket' },
  'several rules': {
    rules: [
      { name: 'hour', limit: 5, window: HOUR },
      { name: 'minute', limit: 4, window: 60_000, algorithm: 'fixed-window' },
    ],
  },
}
/** Two keys of the table are blocked, one has a refund, one was counted by an earlier window. */
const KEYS = ['a', 'b', 'c', 'd', 'e']

/** No other window. */
const ONE_WINDOW = { rules: [] }

function use(limiter: Limiter, rules: RuleOptions | { rules: RuleOptions[] }): void {
  const decisions = KEYS.map((key) => limiter.check(key, 2))
  limiter.checkMany([...KEYS, ...KEYS, 'f', 'g'], 1, { remaining: true })
  for (let i = 0; i < 40; i++) limiter.check(`new ${i}`)
  for (const key of KEYS) {
    const { remaining, retryAfterMs, resetMs } = limiter.peek(key)
    assert.ok(remaining >= 0 && retryAfterMs >= 0 && resetMs >= 0)
    limiter.usage(key)
    limiter.check(key).toJSON()
  }
  limiter.refund(decisions[0]!)
  limiter.refund('b', 1)
  limiter.penalize('c', 3)
  limiter.block('d', HOUR)
  limiter.unblock('d')
  limiter.block('e', Number.POSITIVE_INFINITY)
  limiter.clear('a')
  limiter.reserve('b', 1).commit(1)
  if (!('rules' in rules)) limiter.update(limiter.rule.name, { limit: 6, window: 2 * HOUR })
  for (const key of KEYS) limiter.check(key, 1)
  limiter.clearAll()
  assert.type(limiter.stats().damaged, 'number')
}

/** The index of the bit to flip: in a part of the file that is used, or anywhere. */
function bitFor(i: number, words: number, random: () => number): number {
  const cells = shapeFor(HOUR, 60, 2).waysAt
  const parts = [
    [0, HEADER_WORDS],
    [RECORDS_AT, RECORDS_AT + 32],
    [NAMES_AT, cells],
    [cells, words],
  ]
  const [from, to] = i % 5 === 4 ? [0, words] : parts[i % 5]!
  return 32 * (from! + Math.floor(random() * (Math.min(to!, words) - from!))) + Math.floor(random() * 32)
}

/** A generator of numbers from 0 to 1: the same for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const random = randomOf(1)

/** The bytes with one bit flipped, and which. */
function flipped(i: number, sound: Uint8Array): { bytes: Uint8Array; bit: number } {
  const bit = bitFor(i, sound.length / 4, random)
  const bytes = Uint8Array.from(sound)
  bytes[bit >> 3]! ^= 1 << (bit & 7)
  return { bytes, bit }
}

/** Runs calls that return or throw an error of Millrace. */
function attempt(bit: number, calls: () => void): void {
  try {
    calls()
  } catch (error) {
    assert.ok(error instanceof MillraceError, `bit ${bit}: ${(error as Error).stack}`)
    assert.ok(
      error.code !== 'ERR_MILLRACE_DAMAGED' || /update|[cC]reate|attach/.test(error.stack!),
      `bit ${bit}: ${error.stack}`,
    )
  }
}

/** Flips a bit of the record's number, or CONVERTING, in the names of all cells of the first rule. */
function flipRecords(words: Int32Array<ArrayBuffer>, bit: number): void {
  const { ways, wayWords, waysAt } = arenasIn(
    words.buffer,
    (expected) => new Error(expected) as MillraceError,
  )[0].shape
  for (let base = waysAt; base < waysAt + ways * wayWords; base += wayWords)
    if ((words[base + ADM]! & STATE) === LIVE) words[base + HI]! ^= 1 << bit
}

for (const [name, rules] of Object.entries(RULES)) {
  test(`${name}: a cell of a record that does not exist is refused, counted and reported once`, async () => {
    for (let bit = 0; bit < 7; bit++) {
      const path = at(`${name}, record bit ${bit}`)
      const options = { ...rules, maxKeys: 1, shared: { file: path } }
      const first = createLimiter(options)
      first.check('a')
      await first.close()
      const words = new Int32Array(Uint8Array.from(readFileSync(path)).buffer)
      flipRecords(words, bit)
      writeFileSync(path, new Uint8Array(words.buffer))
      await new Promise(setImmediate) // for the warnings of earlier tests
      warnings.length = 0
      const limiter = createLimiter(options)
      const refused = [limiter.check('a'), limiter.check('a')]
      for (const { allowed, remaining, retryAfterMs } of refused)
        assert.equal([allowed, remaining, retryAfterMs > 0], [false, 0, true], `bit ${bit}`)
      assert.equal([...limiter.checkMany(['a', 'other']).allowed], [0, 1])
      // Of several rules, the others are sound.
      const changed = [limiter.refund('a', 1), limiter.penalize('a', 1), limiter.block('a', 5)]
      if (!('rules' in rules)) assert.equal(changed, [0, false, false])
      assert.ok(limiter.stats().damaged >= 5, `${limiter.stats().damaged}`)
      await new Promise(setImmediate)
      assert.equal(
        warnings.map((warning) => (warning as NodeJS.ErrnoException).code),
        ['ERR_MILLRACE_DAMAGED'],
      )
      await limiter.close()
    }
  })

  test(`${name}: each call on a file with a flipped bit returns`, async () => {
    const path = at(name)
    const options = { ...rules, maxKeys: 1, shared: { file: path } }
    const first = createLimiter(options)
    use(first, ONE_WINDOW)
    await first.close()
    const sound = readFileSync(path)
    for (let i = 0; i < FILES; i++) {
      const { bytes, bit } = flipped(i, sound)
      writeFileSync(path, bytes)
      let limiter: Limiter | undefined
      attempt(bit, () => {
        limiter = createLimiter(options)
        use(limiter, rules)
      })
      await limiter?.close()
    }
  })

  for (const side of ['addon', 'typescript'] as const) {
    test(`${name}: each call on memory with a flipped bit returns, by ${side}`, () => {
      const first = onSide(side, () => createLimiter({ ...rules, maxKeys: 1 }))
      use(first, ONE_WINDOW)
      const share = first.share()
      const sound = new Uint8Array(share.buffer)
      for (let i = 0; i < MEMORIES; i++) {
        const buffer = new SharedArrayBuffer(sound.length)
        new Uint8Array(buffer).set(sound)
        attempt(0, () => {
          // One thread has the memory from before, the other attaches afterwards.
          const early = onSide(side, () => attachLimiter({ ...share, buffer }))
          early.check('a', 1)
          const { bytes, bit } = flipped(i, new Uint8Array(buffer))
          new Uint8Array(buffer).set(bytes)
          attempt(bit, () => use(early, rules))
          attempt(bit, () =>
            use(
              onSide(side, () => attachLimiter({ ...share, buffer })),
              rules,
            ),
          )
        })
      }
    })
  }
}

test.run()
