import { type CheckOptions, createLimiter, type Policy } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { SIDES, type Side } from '../batches.js'
import { type Benchmark, type Contender, figureOf } from '../benchmark.js'
import { cachedKeys, inOrder, randomOrder } from '../keys.js'
import { decideAll, timeDecisions, warmUp } from '../timing.js'

const KEYS = 10_000
const LIMIT = 1_000_000
const WINDOW = '1m'
/** How often all keys are seen for the first time. */
const SIGHTS = { quick: 20, full: 60 }

const PLAIN = 'one rule for all keys'
const PER_CALL = 'a limit of each call'
const KNOWN = 'three plans, known'
const DEFAULT = 'the default, known'
const FIRST = 'three plans, first sight, cached'
const without = (name: string) => `${name}, without the addon`

const workload = (operations: number) => ({
  keyAt: cachedKeys(KEYS),
  order: randomOrder(KEYS, operations),
  filled: inOrder(KEYS),
})

/** Policies of all keys, on three plans that differ in their limits. */
function plans(): Record<string, Policy> {
  const keyAt = cachedKeys(KEYS)
  return Object.fromEntries(
    Array.from({ length: KEYS }, (_, i) => [keyAt(i), { limit: LIMIT + (i % 3), window: WINDOW }]),
  )
}

function configured(policies: Record<string, Policy>) {
  const config = memoryConfig(policies)
  const limiter = createLimiter({
    config,
    default: { limit: LIMIT, window: WINDOW },
    maxKeys: KEYS,
    configCache: { ttl: '1d' },
  })
  return { config, limiter }
}

function contender(name: string, make: () => (key: string) => boolean, side?: Side): Contender {
  return {
    name,
    measure({ operations }) {
      if (side) process.env.MILLRACE_NATIVE = SIDES[side]
      return timeDecisions(workload(operations), make())
    },
  }
}

function plain(): (key: string) => boolean {
  const limiter = createLimiter({ limit: LIMIT, window: WINDOW, maxKeys: KEYS })
  return (key) => limiter.check(key).allowed
}

function perCall(): (key: string) => boolean {
  const limiter = createLimiter({ limit: LIMIT, window: WINDOW, maxKeys: KEYS })
  const options: CheckOptions = { limit: LIMIT - 1 }
  return (key) => limiter.check(key, 1, options).allowed
}

function known(policies: Record<string, Policy>): (key: string) => boolean {
  const { limiter } = configured(policies)
  return (key) => limiter.check(key).allowed
}

/** All keys again and again, each time after the limiter has forgotten which plan they have. */
function firstSight(name: string, side?: Side): Contender {
  return {
    name,
    async measure({ quick }) {
      if (side) process.env.MILLRACE_NATIVE = SIDES[side]
      const { config, limiter } = configured(plans())
      const decide = (key: string) => limiter.check(key).allowed
      const work = workload(100_000)
      warmUp(work, decide)
      let elapsedNs = 0n
      const sights = quick ? SIGHTS.quick : SIGHTS.full
      for (let i = 0; i < sights; i++) {
        await config.put('others:*', { limit: i + 1, window: WINDOW })
        const start = process.hrtime.bigint()
        const admitted = decideAll(work.filled, 0, KEYS, work.keyAt, decide)
        elapsedNs += process.hrtime.bigint() - start
        if (admitted !== KEYS) throw new Error(`${admitted} of ${KEYS} admitted`)
      }
      return { ns: Number(elapsedNs) / (sights * KEYS) }
    },
  }
}

const added = (name: string, to: string) => ({
  value: (round: Parameters<typeof figureOf>[0]) => figureOf(round, name) - figureOf(round, to),
  withoutAddon: (round: Parameters<typeof figureOf>[0]) =>
    figureOf(round, without(name)) - figureOf(round, without(to)),
})

export const configCheck: Benchmark = {
  title: `check with policies of a configuration store: ${KEYS.toLocaleString('en')} hot keys`,
  units: { ns: 'nanoseconds per decision' },
  contenders: [undefined, 'TypeScript' as const].flatMap((side) => {
    const named = (name: string) => (side === undefined ? name : without(name))
    return [
      contender(named(PLAIN), plain, side),
      contender(named(PER_CALL), perCall, side),
      contender(named(DEFAULT), () => known({}), side),
      contender(named(KNOWN), () => known(plans()), side),
      firstSight(named(FIRST), side),
    ]
  }),
  goals: [
    { label: `${KNOWN}: time added`, unit: 'ns', ...added(KNOWN, PLAIN), atMost: 40 },
    { label: `${DEFAULT}: time added`, unit: 'ns', ...added(DEFAULT, PLAIN), atMost: 40 },
    { label: `${FIRST}: time added to a known one`, unit: 'ns', ...added(FIRST, KNOWN), atMost: 100 },
    { label: `${PER_CALL}: time added`, unit: 'ns', ...added(PER_CALL, PLAIN) },
  ],
}
