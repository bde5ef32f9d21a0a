import { LRUCache } from 'lru-cache'
import { type CheckOptions, createLimiter, type Policy } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { SIDES, type Side } from '../batches.js'
import { type Benchmark, type Contender, type Effort, figureOf, type Goal, type Round } from '../benchmark.js'
import { cachedKeys, inOrder, randomOrder } from '../keys.js'
import { median } from '../statistics.js'
import { decideAll, warmUp } from '../timing.js'

/** The cells that they use fit a cache of 1 MB. */
const KEYS = 4_000
/** The cells that they use do not. */
const MANY_KEYS = 10_000
const LIMIT = 1_000_000
const WINDOW = '1m'
/** Of many short loops the median counts: what is measured is a tenth of what disturbs a loop now and then. */
const LOOPS = { quick: 10, full: 60 }
const LOOP_OPERATIONS = 100_000

const PLAIN = 'one rule for all keys'
const PER_CALL = 'a limit of each call'
const KNOWN = 'three plans, known'
const DEFAULT = 'the default, known'
const PASSES = 'three plans, known, pass by pass'
const FIRST = 'three plans, first sight, pass by pass'
const LRU = 'lru-cache alone'
const many = (name: string) => `${name}, ${MANY_KEYS.toLocaleString('en')} keys`
const without = (name: string) => `${name}, without the addon`

type Decide = (key: string) => boolean

/** Policies of all keys, on three plans that differ in their limits. */
function plans(keys: number): Record<string, Policy> {
  const keyAt = cachedKeys(keys)
  return Object.fromEntries(
    Array.from({ length: keys }, (_, i) => [keyAt(i), { limit: LIMIT + (i % 3), window: WINDOW }]),
  )
}

function configured(policies: Record<string, Policy>, maxKeys: number) {
  const config = memoryConfig(policies)
  const limiter = createLimiter({
    config,
    default: { limit: LIMIT, window: WINDOW },
    maxKeys,
    configCache: { ttl: '1d' },
  })
  return { config, decide: (key: string) => limiter.check(key).allowed }
}

/** What decides, for so many keys. */
const makers: Readonly<Record<string, (keys: number) => Decide>> = {
  [PLAIN](maxKeys) {
    const limiter = createLimiter({ limit: LIMIT, window: WINDOW, maxKeys })
    return (key) => limiter.check(key).allowed
  },
  [PER_CALL](maxKeys) {
    const limiter = createLimiter({ limit: LIMIT, window: WINDOW, maxKeys })
    const options: CheckOptions = { limit: LIMIT - 1 }
    return (key) => limiter.check(key, 1, options).allowed
  },
  [DEFAULT]: (keys) => configured({}, keys).decide,
  [KNOWN]: (keys) => configured(plans(keys), keys).decide,
  [LRU](keys) {
    const cache = new LRUCache<string, Policy>({ max: keys })
    for (const [key, policy] of Object.entries(plans(keys))) cache.set(key, policy)
    return (key) => cache.get(key) !== undefined
  },
}

function work(keys: number) {
  return { keyAt: cachedKeys(keys), order: randomOrder(keys, LOOP_OPERATIONS), filled: inOrder(keys) }
}

/** Nanoseconds of each decision in a loop over keys by their order. */
function timeLoop(keyAt: (i: number) => string, order: Int32Array, decide: Decide): number {
  const start = process.hrtime.bigint()
  const admitted = decideAll(order, 0, order.length, keyAt, decide)
  const elapsedNs = Number(process.hrtime.bigint() - start)
  if (admitted !== order.length) throw new Error(`${admitted} of ${order.length} admitted`)
  return elapsedNs / order.length
}

function contender(name: string, keys: number, side?: Side): Contender {
  return {
    name: named(keys === KEYS ? name : many(name), side),
    measure({ quick }) {
      if (side) process.env.MILLRACE_NATIVE = SIDES[side]
      const decide = makers[name]!(keys)
      const workload = work(keys)
      warmUp(workload, decide)
      const loop = () => timeLoop(workload.keyAt, workload.order, decide)
      return { ns: median(Array.from({ length: loopsOf(quick) }, loop)) }
    },
  }
}

/**
 * All keys, one after another, again and again. Before each pass a prefix is put into a store: into the limiter's own, and
 * it forgets which plan each key has; or into that of another limiter, which takes as long and leaves caches as cold.
 */
function passByPass(name: string, isFirstSight: boolean, side?: Side): Contender {
  return {
    name: named(name, side),
    async measure({ quick }) {
      if (side) process.env.MILLRACE_NATIVE = SIDES[side]
      const [own, other] = [configured(plans(KEYS), KEYS), configured(plans(KEYS), KEYS)]
      const workload = work(KEYS)
      warmUp(workload, other.decide)
      warmUp(workload, own.decide)
      const times: number[] = []
      for (let i = 0; i < loopsOf(quick); i++) {
        await (isFirstSight ? own : other).config.put('others:*', { limit: i + 1, window: WINDOW })
        times.push(timeLoop(workload.keyAt, workload.filled, own.decide))
      }
      return { ns: median(times) }
    },
  }
}

const named = (name: string, side: Side | undefined) => (side === undefined ? name : without(name))
const loopsOf = (quick: Effort['quick']) => LOOPS[quick ? 'quick' : 'full']

function added(name: string, to: string): Pick<Goal, 'label' | 'unit' | 'value' | 'withoutAddon'> {
  const timeIn = (round: Round, of: (name: string) => string) =>
    figureOf(round, of(name)) - figureOf(round, of(to))
  return {
    label: `${name}: time added`,
    unit: 'ns',
    value: (round) => timeIn(round, (each) => each),
    withoutAddon: (round) => timeIn(round, without),
  }
}

export const configCheck: Benchmark = {
  title: `check with policies of a configuration store: ${KEYS.toLocaleString('en')} hot keys`,
  units: { ns: 'nanoseconds per decision' },
  // The differences are small beside those between two processes of the same contender.
  rounds: { full: 9, quick: 2 },
  contenders: [
    ...[undefined, 'TypeScript' as const].flatMap((side) => [
      ...[PLAIN, PER_CALL, DEFAULT, KNOWN].map((name) => contender(name, KEYS, side)),
      passByPass(PASSES, false, side),
      passByPass(FIRST, true, side),
      ...[PLAIN, KNOWN].map((name) => contender(name, MANY_KEYS, side)),
    ]),
    ...[KEYS, MANY_KEYS].map((keys) => contender(LRU, keys)),
  ],
  goals: [
    { ...added(KNOWN, PLAIN), atMost: 40 },
    { ...added(DEFAULT, PLAIN), atMost: 40 },
    { ...added(FIRST, PASSES), atMost: 100 },
    added(many(KNOWN), many(PLAIN)),
    added(PER_CALL, PLAIN),
  ],
}
