// The limiters of the limits: one for each way to count. Its keys are descriptors, and each call brings the limit, so
// that a limit can change and counts stay.
import type { AnyLimiter } from '../limiters.js'
import { type Counting, ruleOf } from './config/limits.js'

/** Makes a limiter of one rule. Counts of the same name are the same. */
export type MakeLimiter = (rule: object, name: string) => AnyLimiter

/** A limiter, as all limits that count alike share it. */
export interface Shape {
  readonly id: string
  /** Limiters of the same name count the same keys in the same place, also one that is a shadow. */
  readonly name: string
  readonly limiter: AnyLimiter
  readonly isShadow: boolean
  /** Whether it stays open when no configuration uses it. */
  readonly isKept: boolean
}

/** How limits count, as a name. A limit that becomes a shadow keeps its counts, where they are in a store. */
function nameOf({ windowMs, algorithm, granularity, ownLimit, calendar }: Counting): string {
  const windows = calendar && [calendar.period, calendar.timeZone.replaceAll('/', '.')] // also a name of a file
  return ['envoy', ...(windows ?? [`${windowMs}ms`]), algorithm, granularity, ownLimit]
    .filter((part) => part !== undefined)
    .join('-')
}

export class Shapes {
  readonly #make: MakeLimiter
  readonly #isByName: boolean
  readonly #shapes = new Map<string, Shape>()
  readonly #known = new WeakMap<Counting, Shape>()
  #unused = new Set<Shape>()

  /** @param isByName whether a limiter and its shadow can have the same counts, as in a store that has keys only */
  constructor(make: MakeLimiter, isByName: boolean) {
    this.#isByName = isByName
    this.#make = make
  }

  of(counting: Counting, isKept = false): Shape {
    const known = this.#known.get(counting)
    if (known !== undefined) return known
    const { isShadow } = counting
    const id = `${nameOf(counting)}${isShadow ? '-shadow' : ''}`
    const name = this.#isByName ? nameOf(counting) : id
    let shape = this.#shapes.get(id)
    if (shape === undefined) {
      shape = { id, name, limiter: this.#make(ruleOf(counting), name), isShadow, isKept }
      this.#shapes.set(id, shape)
    }
    this.#known.set(counting, shape)
    return shape
  }

  /**
   * Closes the limiters that none of these use, and that were not used before either: requests in flight may use those of
   * the configuration before.
   */
  async keep(used: readonly Counting[]): Promise<void> {
    const now = new Set(used.map((counting) => this.of(counting)))
    const unused = [...this.#shapes.values()].filter((shape) => !shape.isKept && !now.has(shape))
    const ended = unused.filter((shape) => this.#unused.has(shape))
    this.#unused = new Set(unused)
    for (const { id } of ended) this.#shapes.delete(id)
    await Promise.all(ended.map(({ limiter }) => limiter.close()))
  }

  async ready(): Promise<void> {
    await Promise.all([...this.#shapes.values()].map(({ limiter }) => limiter.ready()))
  }

  async close(): Promise<void> {
    await Promise.all([...this.#shapes.values()].map(({ limiter }) => limiter.close()))
  }
}
