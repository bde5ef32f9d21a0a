// run: also-full, also-long
// Random operations and changes of the list of servers: each figure is that of the definition, no window is over.

import type { Decision } from 'millrace'
import { createRedisLimiter, type RedisLimiter, type RedisShard } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { sized } from '../size.js'
import { one, type Random, randomOf, randomRule } from './exact.js'
import { type Charge, type Expected, ShardedModel } from './sharded-model.js'
import { type ShardServer, withServers } from './sharded-servers.js'
import { redisTest as test } from './skip.js'

const OPERATIONS = sized({ quick: 800, full: 8_000, long: 40_000 })
const PER_LIMITER = sized({ quick: 100, full: 300 })
const KEYS = ['a', 'b', 'c', 'd', 'e', 'f']

const named = ({ name, client }: ShardServer): RedisShard => ({ name, client })

/** One to all of the servers, in any order. */
function someOf(random: Random, servers: readonly ShardServer[]): readonly ShardServer[] {
  const mixed = servers.map((server) => [random(), server] as const).sort(([a], [b]) => a - b)
  return mixed.slice(0, 1 + Math.floor(servers.length * random())).map(([, server]) => server)
}

test('random operations with changes of the list give the figures of the definition', () =>
  withServers(3, async (servers) => {
    const random = randomOf(11)
    const found = { operations: 0, admitted: 0, refused: 0, givenBack: 0, duringChange: 0, several: 0 }
    for (let i = 0; found.operations < OPERATIONS; i++) await operateOn(servers, random, `exact ${i}`, found)
    assert.ok(found.admitted > OPERATIONS / 10 && found.refused > OPERATIONS / 20, JSON.stringify(found))
    assert.ok(found.givenBack > OPERATIONS / 500, JSON.stringify(found))
    assert.ok(found.duringChange > OPERATIONS / 4 && found.several > OPERATIONS / 8, JSON.stringify(found))
  }))

async function operateOn(
  servers: readonly ShardServer[],
  random: Random,
  prefix: string,
  found: Record<'operations' | 'admitted' | 'refused' | 'givenBack' | 'duringChange' | 'several', number>,
): Promise<void> {
  const rules = Array.from({ length: one(random, [1, 1, 2]) }, (_, i) => randomRule(random, `rule ${i}`))
  let nowMs = 1_800_000_000_000 + Math.floor(1e9 * random())
  const first = someOf(random, servers)
  const within = one(random, [1, 10_000])
  const limiter = createRedisLimiter({
    ...{ prefix, rules, shards: first.map(named), changeWithin: within, deadline: '1m' },
    testTime: () => nowMs,
  })
  const model = new ShardedModel(
    limiter.rules,
    first.map(({ name }) => name),
    within + 60_000,
  )
  const longestMs = Math.max(...limiter.rules.map(({ windowMs }) => windowMs))
  const scaleMs = longestMs / one(random, [3, 10, 30, 100])
  const charged: { key: string; decision: Decision; charges: readonly Charge[] }[] = []
  try {
    for (let i = 0; i < PER_LIMITER; i++) {
      nowMs += Math.floor(scaleMs * random())
      if (random() < 0.01) nowMs += 3 * longestMs + within + 60_000
      const key = one(random, KEYS)
      found.operations++
      if (model.serversOf(key, nowMs).length > 1) found.several++
      if (model.changes > 0) found.duringChange++
      await operate(key, random() < 0.7 ? 1 : Math.floor(6 * random()))
    }
  } finally {
    await limiter.close()
  }

  async function operate(key: string, cost: number): Promise<void> {
    const kind = random()
    const refundable = kind > 0.8 && kind < 0.92 ? charged.shift() : undefined
    if (kind < 0.02) {
      const next = someOf(random, servers)
      await limiter.reshard(next.map(named))
      model.reshard(
        next.map(({ name }) => name),
        nowMs,
      )
    } else if (kind < 0.12) compare(await limiter.peek(key, cost), model.peek(key, cost, nowMs))
    else if (kind < 0.16) {
      await limiter.penalize(key, cost)
      model.each(key, nowMs, (rule) => rule.charge(cost, nowMs))
    } else if (kind < 0.18) {
      const ms = 1 + Math.floor(2 * scaleMs * random())
      await limiter.block(key, ms)
      model.each(key, nowMs, (rule) => rule.block(ms, nowMs))
    } else if (kind < 0.22) {
      const was = model.each(key, nowMs, (rule) => rule.unblock(nowMs)).includes(true)
      assert.is(await limiter.unblock(key), was, prefix)
    } else if (kind < 0.23) {
      await limiter.clear(key)
      model.each(key, nowMs, (rule) => rule.clear())
    } else if (kind < 0.25 && model.serversOf(key, nowMs).length === 1) {
      const given = Math.max(...model.each(key, nowMs, (rule) => rule.refund(cost, nowMs)))
      assert.is(await limiter.refund(key, cost), given, prefix)
    } else if (refundable !== undefined) {
      const given = model.refund(refundable.charges, refundable.key, nowMs)
      assert.is(await limiter.refund(refundable.decision), given, prefix)
      if (given > 0) found.givenBack++
    } else {
      const decision = await limiter.check(key, cost)
      const expected = model.check(key, cost, nowMs)
      compare(decision, expected)
      found[decision.allowed ? 'admitted' : 'refused']++
      if (expected.charges.length > 0) charged.push({ key, decision, charges: expected.charges })
    }
  }

  function compare(decision: Decision, { allowed, rules: parts }: Expected): void {
    const seen = decision.rules.map(({ allowed, remaining, retryAfterMs, resetMs }) => ({
      ...{ allowed, remaining, retryAfterMs, resetMs },
    }))
    const message = `${prefix} ${JSON.stringify(rules)}`
    assert.equal({ allowed: decision.allowed, rules: seen }, { allowed, rules: parts }, message)
  }
}

const WINDOW_MS = 60_000
const LIMIT = 6
const WITHIN_MS = 20_000

interface Admission {
  readonly atMs: number
  readonly key: string
  readonly cost: number
}

/**
 * Two processes under load, whose lists change at times that are up to `skewMs` apart. Returns the fullest window of
 * any key, and the part of the requests that was admitted.
 */
async function runTwo(
  servers: readonly ShardServer[],
  { prefix, skewMs, chargeBoth = true }: { prefix: string; skewMs: number; chargeBoth?: boolean },
): Promise<{ fullest: number; admitted: number }> {
  const random = randomOf(3)
  let nowMs = 1_800_000_000_000
  const admissions: Admission[] = []
  const make = (): RedisLimiter =>
    createRedisLimiter({
      ...{ prefix, limit: LIMIT, window: WINDOW_MS, granularity: WINDOW_MS / 12, deadline: '10s' },
      ...{ shards: servers.slice(0, 2).map(named), changeWithin: WITHIN_MS, testTime: () => nowMs },
    })
  const processes = [make(), make()]
  const changes: { atMs: number; process: number; shards: readonly RedisShard[] }[] = []
  let nextChangeMs = nowMs + WINDOW_MS
  const steps = sized({ quick: 100, full: 800, long: 2_000 })
  for (let step = 0; step < steps; step++) {
    nowMs += Math.floor(7_000 * random())
    if (nowMs >= nextChangeMs) {
      const shards = someOf(random, servers).map(named)
      const skew = Math.floor(skewMs * random() ** 0.2)
      const ahead = random() < 0.5 ? 0 : 1
      changes.push(
        { atMs: nowMs, process: ahead, shards },
        { atMs: nowMs + skew, process: 1 - ahead, shards },
      )
      nextChangeMs = nowMs + skewMs + WINDOW_MS * 3 * random()
    }
    // Changes come at their own time, while requests are under way.
    const due = changes.filter(({ atMs }) => atMs <= nowMs)
    for (const change of due) changes.splice(changes.indexOf(change), 1)
    const changing = due.map(({ process, shards }) => processes[process]!.reshard(shards, { chargeBoth }))
    await Promise.all([...changing, ...Array.from({ length: 24 }, () => request())])
  }
  for (const limiter of processes) await limiter.close()
  const fullest = Math.max(...admissions.map((admission) => used(admissions, admission)))
  return { fullest, admitted: admissions.length / (24 * steps) }

  async function request(): Promise<void> {
    const atMs = nowMs
    const key = one(random, KEYS)
    const cost = one(random, [1, 1, 2])
    const limiter = one(random, processes)
    const isRefunded = random() < 0.1
    const decision = await limiter.check(key, cost)
    if (!decision.allowed) return
    const kept = isRefunded ? cost - (await limiter.refund(decision)) : cost
    admissions.push({ atMs, key, cost: kept })
  }
}

/** Units of the key in the window that ends with an admission. */
function used(admissions: readonly Admission[], { atMs, key }: Admission): number {
  return admissions
    .filter((each) => each.key === key && each.atMs <= atMs && each.atMs > atMs - WINDOW_MS)
    .reduce((sum, { cost }) => sum + cost, 0)
}

test('two processes that change at different times, within changeWithin: no window is over', () =>
  withServers(4, async (servers) => {
    const { fullest, admitted } = await runTwo(servers, { prefix: 'within', skewMs: WITHIN_MS })
    assert.is(fullest, LIMIT)
    assert.ok(admitted > 0.02, `${admitted}`)
  }))

test('counts that begin anew let windows go over', () =>
  withServers(4, async (servers) => {
    const { fullest } = await runTwo(servers, { prefix: 'anew', skewMs: WITHIN_MS, chargeBoth: false })
    assert.ok(fullest > LIMIT, `${fullest}`)
  }))

test.run()
