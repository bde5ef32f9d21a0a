// Random puts and deletes of policies, and random calls of `update`, judged by a log of all admissions: in any place, by
// two limiters on the same counts, of which one learns late.
import { type Decision, type LimiterRule, manualClock, type RuleOptions } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import * as assert from 'uvu/assert'
import type { AlgorithmCase, Charge, TimedRule } from '../conformance/algorithms.js'
import type { Either } from '../engines/both.js'
import { random } from './support.js'

const STEPS = 200
const KEYS = ['a', 'plan:b', 'plan:c']
/** In milliseconds. The first one is that of the default. */
export const WINDOWS = [60_000, 6_000, 600_000, 1_000, 61_200]

export type Clock = ReturnType<typeof manualClock>
type Config = ReturnType<typeof memoryConfig>

/** Where limiters count. */
export interface ChangingPlace {
  /** Whether `update` changes the window in one process only, and a call of the other brings it there. */
  readonly isServer: boolean
  /** By how much all times are longer: a server may forget by its own clock. @default 1 */
  readonly scale?: number
  /** Two limiters on the same counts: each with a store of its own, or without one. */
  open(rule: RuleOptions, clock: Clock, configs: readonly Config[]): Promise<readonly [Either, Either]>
}

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

/** Plays on two limiters. The second one learns of each change at once or later. */
export async function playChanges(
  place: ChangingPlace,
  algorithm: AlgorithmCase,
  seed: number,
  hasStore: boolean,
): Promise<void> {
  const { scale = 1, isServer } = place
  const clock = manualClock(60_000_000 * scale)
  const configs = hasStore ? [memoryConfig(), memoryConfig()] : []
  const limiters = await place.open(ruleOf(algorithm, WINDOWS[0]! * scale, 8), clock, configs)
  try {
    await play({ limiters, clock, configs, algorithm, isServer, scale }, seed)
  } finally {
    for (const limiter of limiters) await limiter.close()
  }
}

const ruleOf = ({ options, maxLimit }: AlgorithmCase, window: number, limit: number): RuleOptions => ({
  ...options,
  limit,
  window,
  ...(maxLimit && { maxLimit: 12 }),
})

interface Game {
  readonly limiters: readonly [Either, Either]
  readonly clock: Clock
  /** None: the limiters have no store. */
  readonly configs: readonly Config[]
  readonly algorithm: AlgorithmCase
  readonly isServer: boolean
  readonly scale: number
}

async function play(
  { limiters, clock, configs, algorithm, isServer, scale }: Game,
  seed: number,
): Promise<void> {
  const next = random(seed)
  const hasStore = configs.length > 0
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
      const decision = await limiter.check(key, cost)
      if (!decision.allowed) continue
      const by = ruleBy(limiter, decision)
      charges.push({ key, atMs: clock.now(), units: cost, limit: by.limit, by, isKept: true })
      if (news.length === 0) judge()
      if (next(6) === 0) charges.at(-1)!.units -= await limiter.refund(decision)
    } else if (pick < 11) await limiter.peek(key, 1 + next(4))
    else if (pick < 12) await limiter.checkMany(KEYS, 0)
    else if (pick < 13 || (pick < 14 && !hasStore)) await update(limiter)
    else if (pick < 16 && hasStore) await change(key)
    else {
      while (news.length > 0) await news.shift()!()
      clock.advance(scale * (next(4) === 0 ? next(900_000) : next(5_000)))
    }
  }
  while (news.length > 0) await news.shift()!()
  // A bucket may hold what both threads admitted by higher limits. It runs off by the present one, from 4.
  clock.advance((algorithm.countsInParts ? 8 : 2) * 660_000 * scale)
  for (const key of KEYS) {
    const { limit } = await limiters[0].peek(key)
    const rested = await limiters[next(2)]!.check(key, limit)
    assert.ok(rested.allowed, `seed ${seed}: the whole limit at rest`)
  }

  /** Changes the default, or the only rule: in memory for all at once. */
  async function update(limiter: Either): Promise<void> {
    const window = WINDOWS[next(WINDOWS.length)]! * scale
    const limit = 4 + next(5)
    const isWindow = algorithm.countsInParts || next(2) === 1
    const change = algorithm.countsInParts ? { window } : isWindow ? { window, limit } : { limit }
    if (isServer) await learned(async (who) => limiters[who]!.update('default', change))
    else {
      for (const who of limiters.keys()) await keep(who)
      await limiter.update('default', change)
    }
  }

  /** Notes which charges count before a change, in a thread. */
  async function keep(who: number): Promise<void> {
    for (const charge of charges) {
      const units = await counted(charge, who)
      charge.isKept &&= units > 0
      // The rest has come back. What is left of each charge is rounded up, and that of all together once.
      if (algorithm.countsInParts && units < charge.units) charge.units = units - 1
    }
  }

  /** Puts or deletes the policy of a key, or of a prefix. */
  async function change(of: string): Promise<void> {
    const name = next(3) === 0 ? 'plan:*' : of
    const policy =
      next(3) === 0 ? undefined : ruleOf(algorithm, WINDOWS[next(WINDOWS.length)]! * scale, 4 + next(5))
    await learned((who) =>
      policy === undefined ? configs[who]!.delete(name) : configs[who]!.put(name, policy),
    )
  }

  /** Brings a change to the first limiter, and to the second one now or later. */
  async function learned(change: (who: number) => Promise<unknown>): Promise<void> {
    const learns = (who: number) => async () => {
      await keep(who)
      const before: Present[] = []
      for (const key of KEYS) before.push(await ruleFor(limiters[who]!, key))
      await change(who)
      // Another bucket is charged for units, not for parts of the limit.
      for (const [i, { windowMs, limit }] of before.entries()) {
        const after = await ruleFor(limiters[who]!, KEYS[i]!)
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
  async function counted(charge: Judged, who: number): Promise<number> {
    const present = await ruleFor(limiters[who]!, charge.key)
    if (present.begunMs !== undefined) return charge.atMs >= present.begunMs ? charge.units : 0
    const admitted = { ...charge, limit: charge.by.limit }
    return Math.max(
      algorithm.used(present, [charge], clock.now()),
      algorithm.used(charge.by, [admitted], clock.now()),
    )
  }

  async function ruleFor(limiter: Either, key: string): Promise<Present> {
    return ruleBy(limiter, await limiter.peek(key, 0))
  }

  function ruleBy(limiter: Either, decision: Decision): Present {
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
