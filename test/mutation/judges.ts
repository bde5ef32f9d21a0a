import { Explorer, type ExplorerOptions, type Verdict } from './explorer.js'
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

/** The tests notice most of these before the explorer's few best scenarios would: only few adjust anything. */
const TESTED_FIRST = new Set(['algorithms/adjustments.js'])

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
    options: ExplorerOptions,
    shipped: Mutation,
    tell: (what: string) => void,
  ): Promise<Judges> {
    const explorer = await Explorer.create(options, shipped, tell)
    const tests = await TestFiles.create()
    const verdict = (await tests.judge(shipped, 'quick')) ?? (await tests.judge(shipped, 'long'))
    if (verdict !== undefined) throw new Error(`the shipped code: ${verdict.what}`)
    return new Judges(explorer, tests)
  }

  /** Who noticed it first; undefined: nobody. */
  async judge(mutation: Mutation): Promise<Verdict | undefined> {
    const isPlayed = !UNPLAYED.has(mutation.file)
    return (
      (isPlayed && !TESTED_FIRST.has(mutation.file) && (await this.#explorer.glance(mutation))) ||
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
