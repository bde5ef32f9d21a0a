// Laps have eight bits and ticks 32. A count must not count again when its lap or its tick comes round.
import { createLimiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { shapeFor } from '#millrace/memory/layout.js'
import { ExactLog } from '../judge/exact-log.js'
import { random } from './random.js'

const LIMIT = 100

function limiterAt(startMs: number, windowMs: number, granuleMs: number) {
  const clock = manualClock(startMs)
  const options = { limit: LIMIT, window: windowMs, granularity: granuleMs, maxKeys: 50, clock }
  return { clock, limiter: createLimiter(options) }
}

/** Asserts that exactly the limit is admitted now. */
function assertWholeLimit(limiter: ReturnType<typeof createLimiter>, key: string, message: string): void {
  assert.is(limiter.peek(key).remaining, LIMIT, message)
  for (let i = 0; i < LIMIT; i++) assert.ok(limiter.check(key).allowed, `${message}: unit ${i}`)
  assert.not(limiter.check(key).allowed, `${message}: one over`)
}

for (const parts of [1, 10, 60]) {
  for (const laps of [1, 63, 64, 65, 128, 192, 255, 256, 257, 320, 512, 100_000]) {
    test(`${parts} buckets: a key that returns after ${laps} idle laps has its whole limit, once`, () => {
      const ring = parts + 1
      for (const off of [0, 1, ring - 1]) {
        const { clock, limiter } = limiterAt(5_000_123, parts * 1_000, 1_000)
        for (let i = 0; i < LIMIT; i++) {
          limiter.check('key')
          if (i % 3 === 0 && i / 3 < parts - 1) clock.advance(1_000)
        }
        clock.advance((laps * ring + off) * 1_000)
        assertWholeLimit(limiter, 'key', `${off} ticks past`)
      }
    })
  }
}

test('a key used once a lap, with its other buckets idle for 600 laps, matches an exact log', () => {
  const { clock, limiter } = limiterAt(77_000, 60_000, 1_000)
  const log = new ExactLog()
  const use = (cost: number) => {
    const { allowed } = limiter.check('key', cost)
    const at = clock.now()
    if (allowed) assert.ok(log.used(at, 60_000) + cost <= LIMIT)
    else assert.ok(log.used(at, 61_000) + cost > LIMIT, `refused early at lap ${at / 61_000}`)
    if (allowed) log.add(at, cost)
  }
  for (let slot = 0; slot < 61; slot++) {
    use(1 + (slot % 3))
    clock.advance(1_000)
  }
  for (let lap = 0; lap < 600; lap++) {
    use(LIMIT) // everything or nothing: a count that came round would refuse it
    use(1)
    clock.advance(61_000)
  }
})

const MODULUS = shapeFor(60, 60, 2).modulus // 49.7 days at granules of a millisecond

test('counts stay correct for busy keys when the tick wraps, at granules of a millisecond', () => {
  for (let seed = 0; seed < 20; seed++) {
    const next = random(seed)
    const { clock, limiter } = limiterAt(MODULUS - 2_000, 60, 1)
    const logs = new Map<string, ExactLog>()
    while (clock.now() < MODULUS + 2_000) {
      clock.advance(Math.floor(next() * 4))
      const at = clock.now()
      const key = next() < 0.8 ? 'busy' : `seldom ${Math.floor(next() * 20)}`
      const cost = 1 + Math.floor(next() * 30)
      const log = logs.get(key) ?? new ExactLog()
      logs.set(key, log)
      const { allowed } = limiter.check(key, cost)
      if (allowed) assert.ok(log.used(at, 60) + cost <= LIMIT, `over at ${at - MODULUS}`)
      else assert.ok(log.used(at, 61) + cost > LIMIT, `early at ${at - MODULUS}`)
      if (allowed) log.add(at, cost)
    }
  }
})

test('counts stay correct for keys that are idle while the tick wraps, from a moment to more than 49.7 days', () => {
  const MINUTE = 60_000
  for (const before of [1, 59, 60, 5_000, 20 * MINUTE]) {
    for (const after of [0, 1, 61, 5_000, 20 * MINUTE]) {
      const { clock, limiter } = limiterAt(MODULUS - before, 60, 1)
      assertWholeLimit(limiter, 'key', 'before')
      clock.advance(before + after)
      if (before + after > 60) assertWholeLimit(limiter, 'key', `idle from ${-before} to ${after}`)
      else assert.not(limiter.check('key').allowed)
    }
  }
  for (const short of [-MINUTE, -1_000, 0, 1, 30, 1_000, 5_000, 10 * MINUTE, 16 * MINUTE, 60 * MINUTE]) {
    const { clock, limiter } = limiterAt(12_345, 60, 1)
    assertWholeLimit(limiter, 'key', 'before')
    clock.advance(MODULUS - short)
    limiter.check('another') // raises the arena's newest reading
    if (short > 1_000 || short < 0)
      assertWholeLimit(limiter, 'key', `back ${short} ms short of the whole modulus`)
  }
})

test('a new key shortly before the wrap is counted in its own ticks', () => {
  for (const before of [1, 100, 5_000, 10 * 60_000, 17 * 60_000]) {
    const { clock, limiter } = limiterAt(1_000, 60, 1)
    clock.set(MODULUS - before)
    for (let key = 0; key < 30; key++) assertWholeLimit(limiter, `new ${key}`, `${before} ms before the wrap`)
    clock.advance(61)
    for (let key = 0; key < 30; key++) assertWholeLimit(limiter, `new ${key}`, 'a window later')
  }
})

for (const back of [1_000, 60_000]) {
  test(`a clock that steps back by ${back} ms stands still: no quota is gained, and none is lost afterwards`, () => {
    const { clock, limiter } = limiterAt(10_000_000, 60_000, 1_000)
    for (let i = 0; i < LIMIT / 2; i++) assert.ok(limiter.check('half').allowed)
    assertWholeLimit(limiter, 'full', 'at first')
    clock.advance(-back)
    assert.not(limiter.check('full').allowed)
    for (let i = 0; i < LIMIT / 2; i++) assert.ok(limiter.check('half').allowed)
    assert.not(limiter.check('half').allowed)
    assertWholeLimit(limiter, 'new', 'one that comes now')
    clock.advance(back)
    assert.not(limiter.check('full').allowed)
    assert.is(limiter.check('full').retryAfterMs, 61_000 - (10_000_000 % 1_000))
    clock.advance(61_000)
    for (const key of ['half', 'full', 'new']) assertWholeLimit(limiter, key, `${key} a window later`)
  })
}

for (const [windowMs, granuleMs, most] of [
  [60_000, 1_000, 3_600], // an hour
  [70_000, 7_000, 515], // an hour and the rest of a granule
  [60, 1, 2 ** 20], // the bound in granules, which is less than an hour
  [30, 0.5, 2 ** 20],
  [6 * 3_600_000, 3_600_000, 2], // two granules, which are more than an hour
] as const) {
  test(`granules of ${granuleMs} ms: a step back of ${most} granules stands still, one more forgets the counts`, () => {
    for (const [back, stands] of [
      [most, true],
      [most + 1, false],
    ] as const) {
      const { clock, limiter } = limiterAt(100_000_000, windowMs, granuleMs)
      assertWholeLimit(limiter, 'key', 'at first')
      clock.advance(-back * granuleMs)
      if (stands) assert.not(limiter.check('key').allowed, `${back} granules back`)
      else assertWholeLimit(limiter, 'key', `${back} granules back`)
    }
  })
}

test('a clock that jumps ahead by a year and returns locks no key out', () => {
  const { clock, limiter } = limiterAt(10_000_000, 60_000, 1_000)
  clock.advance(365 * 86_400_000)
  assertWholeLimit(limiter, 'key', 'in a year')
  clock.set(10_000_000)
  assertWholeLimit(limiter, 'key', 'now')
  clock.advance(61_000)
  assertWholeLimit(limiter, 'key', 'a window later')
})

test.run()
