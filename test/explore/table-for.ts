import type { Rule as CheckedRule } from '#millrace/core/rule.js'
import type { Arenas } from '#millrace/memory/arenas.js'
import { HASH } from '#millrace/memory/layout.js'
import type { Arena } from '#millrace/memory/records.js'
import type { Built } from './copy.js'
import { type ExploredAlgorithm, GRANULE_MS, type Scenario } from './scenario.js'

export interface Fingerprint {
  readonly lo: number
  readonly hi: number
}

/** Time units of a token in a granule. */
const PARTS = 8

/** The arenas of the scenario's rules, in one buffer. */
export function arenasFor(built: Built, scenario: Scenario): Arenas {
  const {
    algorithm = 'sliding-window',
    align = 'clock',
    edge = 'strict',
    onFull = 'evict',
    ways = 2,
    sums = 'linear',
    further,
  } = scenario
  const rules = [scenario, ...(further ?? [])].map(({ limit = 1, buckets = 1 }, i) => {
    const units = unitsOf(algorithm, limit, buckets)
    const time = { windowMs: buckets * GRANULE_MS, buckets, units, offsetMs: 0 }
    const own = algorithm === 'fixed-window' ? align : 'none'
    return { name: `rule ${i}`, limit, ...time, edge, align: own, period: 'none', algorithm }
  }) as [CheckedRule, ...CheckedRule[]]
  const keys = keysFor(built, rules[0], ways)
  return further === undefined
    ? [built.createArena(rules[0], keys, onFull, 0, sums)]
    : built.createArenas(rules, keys, onFull, 0)
}

/** The units of a rule's shape. */
export function unitsOf(algorithm: ExploredAlgorithm | undefined, limit: number, buckets: number): number {
  return algorithm === 'token-bucket' ? PARTS * limit * buckets : algorithm === 'sliding-log' ? limit : 0
}

/** The `maxKeys` for which a table has this number of sets: a table is sized for 80 % load. */
function keysFor(built: Built, rule: Parameters<Built['createArena']>[0], sets: number): number {
  for (let keys = 1; keys <= 64 * sets; keys++) {
    if (built.createArena(rule, keys, 'evict', 0).shape.sets === sets) return keys
  }
  throw new Error(`no table has ${sets} sets`)
}

/**
 * A fingerprint that the table maps to the wanted sets: it multiplies and shifts the halves
 * (`memory/table.ts`).
 */
export function fingerprintOf({ homes }: Scenario, { shape: { sets } }: Arena, key: number): Fingerprint {
  const [first, second] = homes?.[key] ?? [0, 1]
  const step = (second - first - 1 + sets) % sets
  const lo = Math.ceil((first / sets) * 2 ** 32) + 64 * key
  const hi = (sets === 2 ? 0 : Math.ceil((step / (sets - 1)) * 2 ** 32) + ~HASH) + 128 * key
  return { lo: lo | 0, hi: hi & HASH }
}
