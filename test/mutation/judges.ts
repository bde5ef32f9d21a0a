import { Explorer, type ExplorerOptions, type Verdict } from './explorer.js'
import { lookAtHash } from './hash-look.js'
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

/** Their own tests notice most of these, before the explorer's few best scenarios would. */
const TESTED_FIRST = /^range-sum|adjustments.js$/

/** All that may notice a mutation, the cheapest first. */
export class Judges {
  readonly #tests: TestFiles
  readonly #newExplorer: () => Promise<Explorer>
  #explorer: Explorer | undefined

  private constructor(tests: TestFiles, newExplorer: () => Promise<Explorer>) {
    this.#tests = tests
    this.#newExplorer = newExplorer
  }

  /** @throws Error where the shipped code doesn't stand its own tests */
  static async create(
    options: ExplorerOptions,
    shipped: Mutation,
    tell: (what: string) => void,
  ): Promise<Judges> {
    const tests = await TestFiles.create()
    const verdict =
      (await tests.judge(shipped, 'first')) ??
      (await tests.judge(shipped, 'quick')) ??
      (await tests.judge(shipped, 'long'))
    if (verdict !== undefined) throw new Error(`the shipped code: ${verdict.what}`)
    return new Judges(tests, () => Explorer.create(options, shipped, tell))
  }

  /** Who noticed it first; undefined: nobody. */
  async judge(mutation: Mutation): Promise<Verdict | undefined> {
    const explorer = UNPLAYED.has(mutation.file) ? undefined : await this.#asked()
    const glances = !TESTED_FIRST.test(mutation.file)
    return (
      (mutation.file === 'memory/hash.js' ? lookAtHash(mutation.code()) : undefined) ??
      (glances ? await explorer?.glance(mutation) : undefined) ??
      (await this.#tests.judge(mutation, 'first')) ??
      (await this.#tests.judge(mutation, 'quick')) ??
      (await explorer?.judge(mutation)) ??
      (await this.#tests.judge(mutation, 'long'))
    )
  }

  async #asked(): Promise<Explorer> {
    this.#explorer ??= await this.#newExplorer()
    return this.#explorer
  }

  async close(): Promise<void> {
    await this.#explorer?.close()
    await this.#tests.close()
  }
}
