import { Rendezvous } from '../../core/rendezvous.js'

interface Named {
  readonly name: string
}

interface Past<S> {
  readonly shards: readonly S[]
  readonly keys: Rendezvous<S>
  /** Until then a charge also goes to the shard that a key has by this list. */
  readonly untilMs: number
}

const over = <S extends Named>(shards: readonly S[]): Rendezvous<S> =>
  new Rendezvous(shards.map((shard) => [shard.name, shard]))

/**
 * The list of shards, and the lists before it whose counts may still matter.
 *
 * A key is charged at the shard that it has by each of these lists. Let U be the time for which a unit counts, and S the
 * time within which all processes have a change, and no call from before it is under way. A list stays for U + S after the next one came. Let a process decide at
 * t. Let j be the first list, of those that it has not forgotten, that no process has forgotten. If j is not its oldest,
 * some process has forgotten the list before j, so it has had j since t - U - S. If j is its oldest, then it has itself
 * (or there has been no change). So all processes have had j since t - U, and still charge it: the shard by j has each
 * unit that counts at t. The process asks that shard, too, so it never admits more than the limit.
 */
export class ShardHistory<S extends Named> {
  #present: readonly S[]
  #keys: Rendezvous<S>
  /** The oldest first. */
  #past: Past<S>[] = []

  constructor(shards: readonly S[]) {
    this.#present = shards
    this.#keys = over(shards)
  }

  get present(): readonly S[] {
    return this.#present
  }

  /** The shards of all lists, each once. */
  get all(): readonly S[] {
    return [...new Set([...this.#past.flatMap(({ shards }) => shards), ...this.#present])]
  }

  /** Puts a list before the present one. */
  precede(shards: readonly S[], untilMs: number): void {
    this.#past.push({ shards, keys: over(shards), untilMs })
  }

  /**
   * Replaces the present list, which counts until then, too; undefined: no list before counts.
   * @returns the shards that are in no list any more
   */
  change(shards: readonly S[], untilMs: number | undefined): readonly S[] {
    return this.#leaving(() => {
      if (untilMs === undefined) this.#past = []
      else this.precede(this.#present, untilMs)
      this.#present = shards
      this.#keys = over(shards)
    })
  }

  /**
   * Forgets the lists that have ended.
   * @returns the shards that are in no list any more
   */
  forget(nowMs: number): readonly S[] {
    if (this.#past.every(({ untilMs }) => nowMs < untilMs)) return []
    return this.#leaving(() => {
      this.#past = this.#past.filter(({ untilMs }) => nowMs < untilMs)
    })
  }

  #leaving(change: () => void): readonly S[] {
    const before = this.all
    change()
    const after = new Set(this.all)
    return before.filter((shard) => !after.has(shard))
  }

  /** The shards of a key, each once: by the oldest list first. */
  find(tag: string): readonly S[] {
    const shard = this.#keys.find(tag)
    if (this.#past.length === 0) return [shard]
    return [...new Set([...this.#past.map(({ keys }) => keys.find(tag)), shard])]
  }
}
