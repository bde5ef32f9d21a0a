import { Explorer, type Verdict } from './explorer.js'
import type { Mutation } from './mutations.js'
import { TestFiles } from './test-files.js'

/** Files that no scenario comes through: only tests judge them. */
const UNPLAYED = new Set([
  'algorithms/forecast.js',
  'memory/arena.js',
  'memory/counters.js',
  'memory/hash.js',
  'memory/keys.js',
  'memory/statistics.js',
])

/** All that may notice a mutation, the cheapest first. */
export class Judges {
  readonly #explorer: Explorer
  readonly #tests: TestFiles

  private constructor(explorer: Explorer, tests: TestFiles) {
    this.#explorer = explorer
    this.#tests = tests
  }

  /** @throws Error where the shipped code doesn't stand its own tests */
  static async create(
    walks: number,
    seed: number,
    shipped: Mutation,
    tell: (what: string) => void,
  ): Promise<Judges> {
    const explorer = await Explorer.create(walks, seed, shipped, tell)
    const tests = await TestFiles.create()
    const verdict = (await tests.judge(shipped, 'quick')) ?? (await tests.judge(shipped, 'long'))
    if (verdict !== undefined) throw new Error(`the shipped code: ${verdict.what}`)
    return new Judges(explorer, tests)
  }

  /** Who noticed it first; undefined: nobody. */
  async judge(mutation: Mutation): Promise<Verdict | undefined> {
    const isPlayed = !UNPLAYED.has(mutation.file)
    return (
      (isPlayed && (await this.#explorer.glance(mutation))) ||
      (await this.#tests.judge(mutation, 'quick')) ||
      (isPlayed && (await this.#explorer.judge(mutation))) ||
      (await this.#tests.judge(mutation, 'long')) ||
      undefined
    )
  }

  async close(): Promise<void> {
    await this.#explorer.close()
    await this.#tests.close()
  }
}
