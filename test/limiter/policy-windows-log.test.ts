// run: also-full, also-long
// Random operations while policies change and `update` changes the default, judged by a log of all admissions: what an
// old window still counts at a change counts in each new one, for each algorithm, with one thread or two.
import {
  attachLimiter,
  createLimiter,
  type Decision,
  type Limiter,
  type LimiterRule,
  manualClock,
  type RuleOptions,
} from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ALGORITHMS, type AlgorithmCase, type Charge, type TimedRule } from '../conformance/algorithms.js'
import { sized } from '../size.js'
import { random } from './support.js'

const RUNS = sized({ quick: 1, full: 4, long: 200 })
const STEPS = 200
const KEYS = ['a', 'plan:b', 'plan:c']
/** In milliseconds. The first one is that of the default. */
const WINDOWS = [60_000, 6_000, 600_000, 1_000, 61_200]

/** What a limiter with a store knows of its decisions. */
interface Deciders {
  deciderOf(decision: Decision): { readonly rules: readonly LimiterRule[] }
}

interface Present extends TimedRule {
  /** When the key's window began, if it begins with a request. */
  readonly begunMs: number | undefined
}

interface Judged extends Charge {
  readonly key: string
  units: number
  limit: number
  /** The rule by which it was admitted. */
  readonly by: Present
  /** Whether it counted at each change of the key's window so far: then the next window must count it. */
  isKept: boolean
}

for (const [index, algorithm] of ALGORITHMS.entries()) {
  if (algorithm.onlyOnRedis !== undefined) continue
  test(`no window is over its limit while policies come and go: ${algorithm.name}`, async () => {
    for (let seed = 1; seed <= RUNS; seed++) await play(algorithm, seed * ALGORITHMS.length + index)
  })

  test(`no window is over its limit while update changes it: ${algorithm.name}`, async () => {
    for (let seed = 1; seed <= RUNS; seed++) await play(algorithm, seed * ALGORITHMS.length + index, false)
  })

  test(`a key that goes to and fro counts once: ${algorithm.name}`, async () => {
    const rule = { ...algorithm.options, ...(algorithm.maxLimit && { maxLimit: 100 }) }
    const clock = manualClock(60_000_000)
    const config = memoryConfig()
    const limiter = createLimiter({
      config,
      default: { ...rule, limit: 100, window: '1h' },
      clock,
      maxKeys: 100,
    })
    limiter.check('a', 5)
    for (let i = 0; i < 10; i++) {
      await config.put('a', { ...rule, limit: 100, window: '2h' })
      clock.advance(1_000)
      assert.is(limiter.usage('a'), 5, `there, ${i}`)
      await config.delete('a')
      clock.advance(1_000)
      assert.is(limiter.usage('a'), 5, `and back, ${i}`)
    }
    for (let i = 0; i < 10; i++) {
      limiter.update('default', { window: '2h' })
      clock.advance(1_000)
      assert.is(limiter.usage('a'), 5, `there by update, ${i}`)
      limiter.update('default', { window: '1h' })
      clock.advance(1_000)
      assert.is(limiter.usage('a'), 5, `and back by update, ${i}`)
    }
    await limiter.close()
  })
}

test('a key that rests while its longest window ends still counts, as that counted it at the change', async () => {
  const clock = manualClock(60_000_000)
  const limiter = createLimiter({ limit: 5, window: '1h', clock })
  assert.ok(limiter.check('a', 5).allowed)
  limiter.update('default', { window: '1m' })
  assert.is(limiter.usage('a'), 5)
  clock.advance(4 * 60_000)
  assert.ok(limiter.check('a').allowed)
  limiter.update('default', { window: '2h' })
  clock.advance(60 * 60_000)
  assert.is(limiter.usage('a'), 6)
  assert.not(limiter.check('a').allowed)
  await limiter.close()
})

for (const { name, options, maxLimit, countsInParts, onlyOnRedis } of ALGORITHMS) {
  if (onlyOnRedis !== undefined) continue
  test(`a key that rests after a change has no more left than if the new window had counted: ${name}`, async () => {
    const rule = { ...options, limit: 8, ...(maxLimit && { maxLimit: 12 }) }
    const windows = sized({ quick: WINDOWS.slice(0, 2), full: WINDOWS })
    for (const from of windows)
      for (const to of windows)
        for (const [ageMs, restMs] of [0, 400, 5_000, 30_000, 59_000].flatMap((ms) => [
          [0, ms],
          [ms, 0],
          [ms, 30_000],
          [700, ms],
        ])) {
          const clock = manualClock(60_000_123)
          const changed = createLimiter({ ...rule, window: from, clock, maxKeys: 100 })
          const alone = createLimiter({ ...rule, window: to, clock, maxKeys: 100 })
          changed.check('a', 7)
          if (!countsInParts) alone.check('a', 7)
          clock.advance(ageMs!)
          const used = changed.usage('a')
          changed.update('default', { window: to })
          if (countsInParts) alone.check('a', used)
          clock.advance(restMs!)
          const [left, most] = [changed, alone].map((limiter) => limiter.peek('a').remaining)
          // What a bucket has of a token may be lost on the way.
          const lost = countsInParts ? 1 : 0
          assert.ok(
            used === 0 || left! <= most! + lost,
            `${from} to ${to}, ${ageMs}, ${restMs}: ${left} of ${most}`,
          )
          await changed.close()
          await alone.close()
        }
  })
}

test('a longer window does not bring back what was cleared, also after it had ended', async () => {
  for (const { name, options, maxLimit, onlyOnRedis } of ALGORITHMS) {
    if (onlyOnRedis !== undefined) continue
    const rule = { ...options, limit: 10, ...(maxLimit && { maxLimit: 12 }) }
    for (const clearing of ['clear', 'clearAll'] as const)
      for (const waitMs of [0, 400, 900, 1_500, 5_000])
        for (const windows of [['1s'], ['1m', '1s']] as const) {
          const clock = manualClock(60_000_123)
          const limiter = createLimiter({ ...rule, window: windows[0], clock, maxKeys: 10 })
          limiter.check('a', 5)
          limiter.update('default', { window: '1s' })
          limiter.usage('a')
          clock.advance(waitMs)
          limiter[clearing]('a')
          limiter.update('default', { window: '1m' })
          assert.is(limiter.usage('a'), 0, `${name}, ${windows}, ${clearing} after ${waitMs}`)
          await limiter.close()
        }
  }
})

test('a window that begins before the one that it replaces counts what that never knew', async () => {
  const clock = manualClock(62_830_450)
  const limiter = createLimiter({ algorithm: 'fixed-window', limit: 6, window: 60_000, clock, maxKeys: 10 })
  assert.ok(limiter.check('a', 6).allowed)
  limiter.update('default', { window: 61_200 })
  limiter.usage('a')
  clock.advance(22_065)
  limiter.check('a')
  limiter.update('default', { window: 60_000 })
  assert.not(limiter.check('a', 5).allowed, '12 in one minute of the clock')
  await limiter.close()
})

for (const { name, options, maxLimit, onlyOnRedis } of ALGORITHMS) {
  if (onlyOnRedis !== undefined) continue
  test(`what a ledger stands for is in its cell, over several changes: ${name}`, async () => {
    const rule = { ...options, limit: 6, ...(maxLimit && { maxLimit: 12 }) }
    for (const [second, waitMs] of WINDOWS.flatMap(
      (ms) =>
        [
          [ms, 10],
          [ms, 200_000],
        ] as const,
    )) {
      const clock = manualClock(60_000_000)
      const config = memoryConfig()
      const limiter = createLimiter({ config, default: { ...rule, window: '1m' }, clock, maxKeys: 100 })
      await config.put('a', { ...rule, window: '1h' })
      assert.ok(limiter.check('a', 6).allowed)
      await config.delete('a')
      limiter.usage('a')
      clock.advance(waitMs)
      limiter.update('default', { window: second })
      clock.advance(300_000)
      limiter.usage('a')
      clock.advance(50_000)
      limiter.update('default', { window: '1h' })
      const { limit, remaining } = limiter.peek('a', 0)
      // A bucket has got less than a token back.
      assert.ok(limit - remaining >= 5, `${second}, ${waitMs}: ${limit - remaining} of 6 count`)
      await limiter.close()
    }
  })
}

/** Plays on a limiter and on one that is attached to it, which learns of each change at once or later. */
async function play(algorithm: AlgorithmCase, seed: number, hasStore = true): Promise<void> {
  const next = random(seed)
  const clock = manualClock(60_000_000)
  const policyOf = (windowMs: number, limit: number): RuleOptions => ({
    ...algorithm.options,
    limit,
    window: windowMs,
    ...(algorithm.maxLimit && { maxLimit: 12 }),
  })
  const configs = [memoryConfig(), memoryConfig()]
  const rule = policyOf(WINDOWS[0]!, 8)
  const options = { clock, maxKeys: 100 }
  const first = hasStore
    ? createLimiter({ ...options, default: rule, maxWindows: 64, config: configs[0]! })
    : createLimiter({ ...options, ...rule })
  const second = attachLimiter(first.share(), hasStore ? { config: configs[1]! } : {})
  const limiters: Limiter[] = [first, second]
  const charges: Judged[] = []
  /** What the second thread has not learned yet. */
  const news: (() => Promise<unknown>)[] = []
  for (let step = 0; step < STEPS; step++) {
    const who = next(2)
    const limiter = limiters[who]!
    const key = KEYS[next(KEYS.length)]!
    const pick = next(20)
    if (pick < 9) {
      const cost = 1 + next(4)
      const decision = limiter.check(key, cost)
      if (!decision.allowed) continue
      const by = ruleBy(limiter, decision)
      charges.push({ key, atMs: clock.now(), units: cost, limit: by.limit, by, isKept: true })
      if (news.length === 0) judge()
      if (next(6) === 0) charges.at(-1)!.units -= limiter.refund(decision)
    } else if (pick < 11) limiter.peek(key, 1 + next(4))
    else if (pick < 12) limiter.checkMany(KEYS, 0)
    else if (pick < 13 || (pick < 14 && !hasStore)) update(limiter)
    else if (pick < 16 && hasStore) await change(key)
    else {
      while (news.length > 0) await news.shift()!()
      clock.advance(next(4) === 0 ? next(900_000) : next(5_000))
    }
  }
  while (news.length > 0) await news.shift()!()
  // A bucket may hold what both threads admitted by higher limits. It runs off by the present one, from 4.
  clock.advance((algorithm.countsInParts ? 8 : 2) * 660_000)
  for (const key of KEYS) {
    const { limit } = limiters[0]!.peek(key)
    assert.ok(limiters[next(2)]!.check(key, limit).allowed, `seed ${seed}: the whole limit at rest`)
  }

  /** Changes the default, or the only rule, for all threads at once. */
  function update(limiter: Limiter): void {
    for (const who of limiters.keys()) keep(who)
    const window = WINDOWS[next(WINDOWS.length)]!
    const limit = 4 + next(5)
    if (algorithm.countsInParts) limiter.update('default', { window })
    else limiter.update('default', next(2) === 0 ? { limit } : { window, limit })
  }

  /** Notes which charges count before a change, in a thread. */
  function keep(who: number): void {
    for (const charge of charges) {
      const units = counted(charge, who)
      charge.isKept &&= units > 0
      // The rest has come back. What is left of each charge is rounded up, and that of all together once.
      if (algorithm.countsInParts && units < charge.units) charge.units = units - 1
    }
  }

  /** Puts or deletes the policy of a key, or of a prefix. */
  async function change(of: string): Promise<void> {
    const name = next(3) === 0 ? 'plan:*' : of
    const policy = next(3) === 0 ? undefined : policyOf(WINDOWS[next(WINDOWS.length)]!, 4 + next(5))
    const learns = (who: number) => async () => {
      keep(who)
      const before = KEYS.map((each) => ruleOf(limiters[who]!, each))
      await (policy === undefined ? configs[who]!.delete(name) : configs[who]!.put(name, policy))
      // Another bucket is charged for units, not for parts of the limit.
      for (const [i, { windowMs, limit }] of before.entries()) {
        const after = ruleOf(limiters[who]!, KEYS[i]!)
        if (windowMs === after.windowMs && limit === after.limit) continue
        for (const charge of charges) if (charge.key === KEYS[i]) charge.limit = after.limit
      }
    }
    await learns(0)()
    if (next(2) === 0) news.push(learns(1))
    else {
      while (news.length > 0) await news.shift()!()
      await learns(1)()
    }
  }

  /** How many units of a charge its key's window counts, or the window by which it was admitted. */
  function counted(charge: Judged, who: number): number {
    const present = ruleOf(limiters[who]!, charge.key)
    if (present.begunMs !== undefined) return charge.atMs >= present.begunMs ? charge.units : 0
    const admitted = { ...charge, limit: charge.by.limit }
    return Math.max(
      algorithm.used(present, [charge], clock.now()),
      algorithm.used(charge.by, [admitted], clock.now()),
    )
  }

  function ruleOf(limiter: Limiter, key: string): Present {
    return ruleBy(limiter, limiter.peek(key, 0))
  }

  function ruleBy(limiter: Limiter, decision: Decision): Present {
    const decider = hasStore ? (limiter as unknown as Deciders).deciderOf(decision) : limiter
    const { windowMs, granularityMs } = decider.rules[0]!
    // Windows that begin with a key's first request begin with what is carried, too.
    const isFromFirst = algorithm.options.align === 'first'
    const begunMs = isFromFirst ? clock.now() + decision.resetMs - windowMs : undefined
    return { windowMs, granularityMs, limit: decision.limit, begunMs }
  }

  /** The units of the last admission's key that count by its rule. */
  function judge(): void {
    const { key, by } = charges.at(-1)!
    const kept = charges.filter((charge) => charge.key === key && charge.isKept && charge.units > 0)
    const { begunMs } = by
    const used =
      begunMs === undefined
        ? algorithm.used(by, kept, clock.now())
        : kept.reduce((sum, { atMs, units }) => (atMs >= begunMs ? sum + units : sum), 0)
    // A bucket brings whole tokens to another one. What either has of a token may be lost on the way.
    const isMoved = kept.some((charge) => charge.by.windowMs !== by.windowMs || charge.by.limit !== by.limit)
    const lost = algorithm.countsInParts && isMoved ? 1 : 0
    assert.ok(used <= by.limit + lost, `seed ${seed}: ${used} of ${by.limit} in ${by.windowMs} ms`)
  }
}

test.run()
