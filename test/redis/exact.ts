// Random operations on a Redis server, in a test's time, against what each algorithm promises by its definition.
import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import type { Decision, LimiterRule, RuleOptions } from 'millrace'
import { createRedisLimiter, type RedisRulesOptions } from 'millrace/redis'
import { MAX_LIMIT } from '#millrace/core/rule-algorithms.js'
import { ModelRule } from './exact-rules.js'

export interface Findings {
  operations: number
  admitted: number
  refused: number
  givenBack: number
}

export type Random = () => number

/** One key of one rule, by its definition. Times are milliseconds. */
export interface Model {
  readonly windowMs: number
  decide(cost: number, nowMs: number): { allowed: boolean; retryAfterMs: number }
  /** As of now, also after a charge. */
  figures(nowMs: number): { remaining: number; resetMs: number }
  /** Charges, also beyond the limit. Returns the receipt. */
  charge(cost: number, nowMs: number): object | undefined
  /** Takes out up to `cost` units, the oldest first. Returns how many. */
  refund(cost: number, nowMs: number): number
  /** Gives back a charge that still counts. */
  giveBack(receipt: object | undefined, nowMs: number): number
  block(ms: number, nowMs: number): void
  unblock(nowMs: number): boolean
  clear(nowMs: number): void
  /** The units used in the last `lastMs`. */
  usage?(lastMs: number, nowMs: number): number
}

/** Limiters to compare: random rules, their models, and further options. */
export interface Compared {
  rule(random: Random, name: string): RuleOptions
  model(rule: LimiterRule): Model
  readonly options?: Partial<RedisRulesOptions>
}

/** Rules whose keys are packed strings. */
const PACKED: Compared = { rule: randomRule, model: (rule) => new ModelRule(rule) }

/** A generator of numbers from 0 to 1 (mulberry32). */
export function randomOf(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const OPERATIONS_PER_KEY = 300
/** A cost for limits of {@link MAX_LIMIT}. */
const LARGE_UNIT = 200_000
/** Calls that are under way together. The server runs them in their order. */
const TOGETHER = 60

/** Runs random operations until there are enough. Throws at the first difference. */
export async function runExact(
  client: Redis,
  operations: number,
  seed: number,
  compared: Compared = PACKED,
): Promise<Findings> {
  const random = randomOf(seed)
  const found: Findings = { operations: 0, admitted: 0, refused: 0, givenBack: 0 }
  for (let i = 0; found.operations < operations; i++)
    await runKey(client, random, `${seed} ${i}`, found, compared)
  return found
}

export const one = <T>(random: Random, of: readonly T[]): T => of[Math.floor(random() * of.length)]!

/** A rule of any algorithm that is on Redis. */
export function randomRule(random: Random, name: string): RuleOptions {
  const limit = one(random, [1, 3, 20, 100])
  const windowMs = one(random, [1, 7, 60, 1_000, 60_000])
  switch (one(random, ['sliding-window', 'sliding-window', 'fixed-window', 'token-bucket'] as const)) {
    case 'sliding-window': {
      const granules = one(random, [1, 2, 6, 60, 255, 300])
      const most = random() < 0.2 ? MAX_LIMIT : limit
      return { name, limit: most, window: windowMs, granularity: windowMs / granules }
    }
    case 'fixed-window':
      return {
        name,
        limit,
        window: windowMs,
        algorithm: 'fixed-window',
        align: one(random, ['clock', 'first']),
      }
    default:
      return { name, limit, window: Math.max(windowMs, limit), algorithm: 'token-bucket' }
  }
}

async function runKey(
  client: Redis,
  random: Random,
  prefix: string,
  found: Findings,
  { rule, model, options }: Compared,
): Promise<void> {
  const rules = Array.from({ length: one(random, [1, 1, 2, 3]) }, (_, i) => rule(random, `rule ${i}`))
  let nowMs = 1_800_000_000_000 + Math.floor(1e9 * random())
  const limiter = createRedisLimiter({
    client,
    prefix,
    rules,
    deadline: '1m',
    testTime: () => nowMs,
    ...options,
  })
  await limiter.ready()
  const models = limiter.rules.map(model)
  // A value counts modulo 2^24: a hundred charges of such units go beyond that.
  const unit = Math.min(...rules.map(({ limit }) => (limit === MAX_LIMIT ? LARGE_UNIT : 1)))
  const scaleMs = (models[0]!.windowMs / one(random, [1, 5, 30, 100])) * 2
  const charged: Decision[] = []
  for (let left = OPERATIONS_PER_KEY; left > 0; left -= TOGETHER) {
    const calls: Promise<void>[] = []
    const refundable = charged.splice(0)
    for (let i = 0; i < TOGETHER; i++) {
      nowMs += Math.floor(scaleMs * random())
      if (random() < 0.01) nowMs += Math.floor(200_000 * random())
      if (random() < 0.01) nowMs -= Math.floor(20 * random())
      calls.push(operate())
    }
    await Promise.all(calls)

    /** Calls one method, and compares the answer with the models, which change at once. */
    function operate(): Promise<void> {
      found.operations++
      const kind = random()
      const cost = unit * (random() < 0.7 ? 1 : Math.floor(6 * random()))
      if (kind < 0.6) return compare(limiter.check('key', cost), decide(cost, true))
      if (kind < 0.7) return compare(limiter.peek('key', cost), decide(cost, false))
      if (kind < 0.75)
        return same(
          limiter.penalize('key', cost),
          each((model) => model.charge(cost, nowMs)),
        )
      if (kind < 0.77)
        return same(limiter.refund('key', cost), Math.max(...models.map((m) => m.refund(cost, nowMs))))
      if (kind < 0.92) {
        const decision = refundable.shift()
        if (decision === undefined) return compare(limiter.check('key', cost), decide(cost, true))
        const marks = receipts.get(decision)!
        const given = Math.max(...models.map((m, i) => m.giveBack(marks[i]!, nowMs)))
        if (given > 0) found.givenBack++
        return same(limiter.refund(decision), given)
      }
      if (kind < 0.94) {
        const ms = random() < 0.1 ? Number.POSITIVE_INFINITY : 1 + Math.floor(scaleMs * 2 * random())
        return same(
          limiter.block('key', ms),
          each((model) => model.block(ms, nowMs)),
        )
      }
      const [first] = models
      if (kind < 0.96 && first?.usage !== undefined) {
        const ms = 1 + Math.floor(first.windowMs * random())
        return same(limiter.usage('key', ms), first.usage(ms, nowMs))
      }
      if (kind < 0.99) return same(limiter.unblock('key'), models.map((m) => m.unblock(nowMs)).includes(true))
      each((model) => model.clear(nowMs))
      return same(limiter.clear('key'), undefined)
    }
  }
  await limiter.close()

  function decide(cost: number, charges: boolean) {
    const before = models.map((model) => model.decide(cost, nowMs))
    const allowed = before.every((each) => each.allowed)
    const isCharged = allowed && charges && cost > 0
    const marks = models.map((model) => (isCharged ? model.charge(cost, nowMs) : undefined))
    const rules = before.map((each, i) => ({ ...each, ...models[i]!.figures(nowMs) }))
    if (charges) found[allowed ? 'admitted' : 'refused']++
    return { allowed, rules, marks, isCharged }
  }

  async function compare(promise: Promise<Decision>, expected: ReturnType<typeof decide>): Promise<void> {
    const decision = await promise
    const { allowed, rules: parts, marks, isCharged } = expected
    const seen = decision.rules.map(({ allowed, remaining, retryAfterMs, resetMs }) => ({
      allowed,
      remaining,
      retryAfterMs,
      resetMs,
    }))
    assert.deepEqual({ allowed: decision.allowed, rules: seen }, { allowed, rules: parts }, describe())
    if (!isCharged) return
    receipts.set(decision, marks)
    charged.push(decision)
  }

  async function same<T>(promise: Promise<T>, expected: T): Promise<void> {
    assert.deepEqual(await promise, expected, describe())
  }

  /** Changes all models. Returns the answer of the method that does the same. */
  function each(act: (model: Model) => unknown): true {
    for (const model of models) act(model)
    return true
  }

  function describe(): string {
    return `prefix ${prefix}: ${JSON.stringify(rules)}`
  }
}

const receipts = new WeakMap<Decision, readonly (object | undefined)[]>()
