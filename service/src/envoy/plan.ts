// Which limits a request meets, before anything is decided.

import { type Counting, countingOf, type RateLimit } from './config/limits.js'
import type { Config } from './config/read.js'
import { countKey, findLimit } from './config/tree.js'
import { type CurrentLimit, type Descriptor, type RateLimitRequest, UNIT_MS } from './contract.js'
import type { Shape, Shapes } from './shapes.js'

/** What metrics call limits that a request brings. */
const OVERRIDE = 'override'

/** A key of a limiter that descriptors of a request count by. */
export interface Counted {
  shape: Shape
  readonly key: string
  limit: number
  /** 0: nothing is charged, and it is refused if nothing is left. */
  cost: number
}

/** One descriptor of a request. */
export interface Planned {
  /** Undefined: it has no limit, and is admitted. */
  readonly counted: Counted | undefined
  readonly isUnlimited: boolean
  readonly current: CurrentLimit | undefined
  readonly windowMs: number
  /** Whether it is admitted in any case. */
  readonly isShadow: boolean
  readonly hits: number
  /** For metrics. */
  readonly rule: string
  readonly shown: string
}

export interface Plan {
  readonly planned: readonly Planned[]
  /** Each key once: equal descriptors are one request for all of their hits. */
  readonly counted: readonly Counted[]
}

const FREE = {
  ...{ counted: undefined, isUnlimited: false, current: undefined, windowMs: 0 },
  ...{ isShadow: false, hits: 0, rule: '', shown: '' },
}
/** Of limits that requests bring, by unit: each call brings its limit. */
const overrides = new Map<number, Counting>()

/** @param areJoined whether equal descriptors are decided as one */
export function planOf(
  { domain, descriptors, hitsAddend }: RateLimitRequest,
  { domains }: Config,
  shapes: Shapes,
  areJoined: boolean,
): Plan {
  const root = domains.get(domain)
  if (root === undefined) return { planned: descriptors.map(() => FREE), counted: [] }
  const met = descriptors.map((descriptor) =>
    descriptor.limit === undefined ? findLimit(root, domain, descriptor.entries) : undefined,
  )
  const replaced = new Set<string>()
  for (const each of met) for (const name of each?.limit.replaces ?? []) replaced.add(name)
  const counted: Counted[] = []
  const count = (shape: Shape, key: string, limit: number, cost: number): Counted => {
    const isSame = (each: Counted) =>
      each.key === key && each.shape.name === shape.name && each.cost > 0 === cost > 0
    const same = areJoined ? counted.find(isSame) : undefined
    if (same !== undefined) {
      same.cost += cost
      same.limit = Math.min(same.limit, limit)
      if (same.shape.isShadow) same.shape = shape
      return same
    }
    const own = { shape, key, limit, cost }
    counted.push(own)
    return own
  }
  const planned = descriptors.map((descriptor, i): Planned => {
    const hits = descriptor.hitsAddend ?? (hitsAddend || 1)
    if (descriptor.limit !== undefined) return overridden(descriptor, domain, hits, shapes, count)
    const { limit, key, shown } = met[i] ?? {}
    if (limit === undefined || (limit.name !== '' && replaced.has(limit.name))) return FREE
    const { rule, isUnlimited, counting } = limit
    const { windowMs, isShadow } = counting
    const own = { hits, rule, shown: shown!, windowMs, isShadow, isUnlimited }
    if (isUnlimited) return { ...own, counted: undefined, current: undefined }
    const current = currentOf(limit)
    return { ...own, current, counted: count(shapes.of(counting), key!, limit.requestsPerUnit, hits) }
  })
  return { planned, counted }
}

const currents = new WeakMap<RateLimit, CurrentLimit>()

function currentOf(limit: RateLimit): CurrentLimit {
  let current = currents.get(limit)
  if (current === undefined) {
    const { requestsPerUnit, unit, name } = limit
    current = { requestsPerUnit, unit, name }
    currents.set(limit, current)
  }
  return current
}

function overridden(
  { entries, limit }: Descriptor,
  domain: string,
  hits: number,
  shapes: Shapes,
  count: (shape: Shape, key: string, limit: number, cost: number) => Counted,
): Planned {
  const { requestsPerUnit, unit } = limit!
  let counting = overrides.get(unit)
  if (counting === undefined) {
    counting = countingOf(UNIT_MS[unit]!, requestsPerUnit)
    overrides.set(unit, counting)
  }
  const counted = count(shapes.of(counting, true), countKey(domain, entries), requestsPerUnit, hits)
  const current = { requestsPerUnit, unit, name: '' }
  const own = { counted, current, windowMs: counting.windowMs, hits }
  return { ...own, isUnlimited: false, isShadow: false, rule: OVERRIDE, shown: '' }
}
