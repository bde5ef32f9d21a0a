// What a store must hold after its writer has died: each acknowledged write, and of those under way all or nothing.
import { readFileSync, truncateSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { InvalidPolicy, StoredPolicy } from 'millrace/config/lmdb'
import { batchKeysOf, keysOf, LANES, policyOf } from './job.js'

/** The numbers that a key may have: the acknowledged one, and those of writes under way since. 0: no policy. */
type Possible = Set<number>

export class Judge {
  readonly #writer: number
  readonly #log: string
  readonly #possible = new Map<string, Possible>()
  readonly #versions = new Map<string, number>()
  readonly complaints: string[] = []
  acknowledged = 0
  /** Writes that the death of their process has cut off, and of these the ones that are there all the same. */
  cutOff = 0
  kept = 0
  last = 0

  constructor(writer: number, log: string) {
    this.#writer = writer
    this.#log = log
  }

  /** Reads the log of a writer that has ended, and empties it. */
  readLog(): void {
    const lines = readFileSync(this.#log, 'utf8').split('\n')
    for (const line of lines.slice(0, -1)) {
      const [event, key, text] = line.split(' ') as [string, string, string]
      const number = Number(text)
      this.last = Math.max(this.last, number)
      if (event === 'begun') this.#numbersOf(key).add(number)
      else {
        this.#possible.set(key, new Set([number]))
        this.acknowledged++
      }
    }
    truncateSync(this.#log)
  }

  #numbersOf(key: string): Possible {
    const known = this.#possible.get(key)
    if (known !== undefined) return known
    const none = new Set([0])
    this.#possible.set(key, none)
    return none
  }

  /** Compares what a store has with the log. From then on a key must have what it has now. */
  check(stored: readonly (StoredPolicy | InvalidPolicy)[]): void {
    const found = new Map(stored.map((each) => [each.key, each]))
    for (let lane = 0; lane < LANES; lane++)
      for (const key of keysOf(this.#writer, lane)) this.#settle(key, this.#numberOf(key, found.get(key)))
    const numbers = new Set(batchKeysOf(this.#writer).map((key) => this.#numberOf(key, found.get(key))))
    if (numbers.size > 1) this.complaints.push(`half a batch: ${[...numbers].join(', ')}`)
    this.#settle('batch', [...numbers][0]!)
  }

  #settle(key: string, actual: number): void {
    const possible = this.#numbersOf(key)
    if (!possible.has(actual))
      this.complaints.push(`${key} has ${actual}, and may have ${[...possible].join(' or ')}`)
    if (possible.size > 1) {
      this.cutOff += possible.size - 1
      if ([...possible].indexOf(actual) > 0) this.kept++
    }
    this.#possible.set(key, new Set([actual]))
  }

  /** The number of the policy that a key has; 0: none; -1: no whole one. */
  #numberOf(key: string, found: StoredPolicy | InvalidPolicy | undefined): number {
    if (found === undefined) return 0
    if (found.policy === undefined) {
      this.complaints.push(found.error.message)
      return -1
    }
    const { policy, version } = found
    const number = Number('rules' in policy ? policy.rules[0]!.limit : policy.limit)
    if (!isDeepStrictEqual(policy, policyOf(number)))
      this.complaints.push(`${key}: a mixture: ${JSON.stringify(policy)}`)
    const before = this.#versions.get(key) ?? 0
    if (version < before) this.complaints.push(`${key}: version ${version} after ${before}`)
    this.#versions.set(key, version)
    return number
  }
}
