import { spawn } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { toCommonJS } from '../commonjs.js'
import { copyPackage } from '../mutants/package-copy.js'
import type { Verdict } from './explorer.js'
import type { Mutation } from './mutations.js'

const LIMITER =
  'decision adjustments refund block full-table effect stats distant-clock batch closed ' +
  'bad-change bad-clock bad-input bad-options bad-rule bad-share taken-place'
/** All that is quick and looks at what a limiter decides; but who waits, whose tests want a process of their own. */
const QUICK = [
  'algorithms/promises',
  'algorithms/laps',
  ...LIMITER.split(' ').map((name) => `limiter/${name}`),
  'engines/fingerprints',
  'algorithms/interrupted',
]
const SUMS = ['range-sum/left-behind', 'range-sum/structures', 'range-sum/reads']
/** Where the quick test to notice most probably is. */
const FIRST: Readonly<Record<string, readonly string[]>> = {
  'algorithms/adjustments.js': ['memory/words', 'limiter/adjustments', 'limiter/block', 'limiter/refund'],
  'algorithms/forecast.js': [
    'limiter/decision',
    'range-sum/left-behind',
    'range-sum/reads',
    'engines/outlook',
  ],
  'algorithms/ring.js': ['memory/words'],
  'algorithms/sliding-window.js': ['memory/words'],
  'memory/arena.js': ['memory/arena', 'limiter/bad-share'],
  'memory/counters.js': ['memory/counters', 'limiter/stats'],
  'memory/keys.js': ['limiter/bad-input', 'limiter/batch'],
  'memory/key-reader.js': ['limiter/bad-input', 'limiter/batch', 'limiter/closed'],
  'memory/slots.js': ['memory/slots'],
  'memory/insertion.js': ['memory/choice', 'memory/places'],
  'memory/layout.js': ['memory/layout'],
  'memory/table.js': ['memory/sets', 'memory/places'],
  'memory/statistics.js': ['memory/statistics', 'limiter/stats', 'limiter/full-table'],
  'range-sum/blocks.js': SUMS,
  'range-sum/fenwick.js': SUMS,
  'range-sum/nodes.js': SUMS,
  'range-sum/plain.js': SUMS,
  'range-sum/range-sum.js': SUMS,
  'range-sum/select.js': SUMS,
}
const TIME = ['core/ticks', 'clock/steps', 'clock/far-steps']
const PLACES = ['attack/short-fingerprints']
const CONFORMANCE = ['range-sum/conformance']
/** Nothing but its own test tells one fingerprint from another. */
const HASH = 'memory/hash.js'
/** Longer ones, for what they are about. */
const LONG: Readonly<Record<string, readonly string[]>> = {
  'algorithms/forecast.js': TIME,
  'algorithms/ring.js': TIME,
  'algorithms/sliding-window.js': TIME,
  'memory/hash.js': ['memory/hash'],
  'memory/insertion.js': PLACES,
  'memory/layout.js': [...TIME, ...PLACES],
  'memory/table.js': PLACES,
  'range-sum/blocks.js': CONFORMANCE,
  'range-sum/fenwick.js': CONFORMANCE,
  'range-sum/nodes.js': CONFORMANCE,
}
/** Seconds of processor time, four times and more what they take: who needs more hangs. */
const MOST_SECONDS = { first: 5, quick: 10, long: 40 }
/** And however long a busy machine may take for that. */
const MOST_MS = 300_000

/** A copy of the package into which one mutation after another is put, and which the test files are run on. */
export class TestFiles {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  static async create(): Promise<TestFiles> {
    return new TestFiles(await copyPackage())
  }

  /** Runs what concerns the mutation's file, up to the first test that fails. */
  async judge(
    { file, original, code }: Mutation,
    which: keyof typeof MOST_SECONDS,
  ): Promise<Verdict | undefined> {
    const files = { first: FIRST[file], quick: file === HASH ? [] : QUICK, long: LONG[file] }[which]
    if (files === undefined || files.length === 0) return undefined
    const path = join(this.#folder, 'dist', file)
    await writeFile(path, toCommonJS(code(), file))
    try {
      return await this.#run(files, MOST_SECONDS[which])
    } finally {
      await writeFile(path, toCommonJS(original, file))
    }
  }

  async close(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true })
  }

  #run(files: readonly string[], seconds: number): Promise<Verdict | undefined> {
    const script = join(this.#folder, 'build/test/mutation/run-some.js')
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [script, String(seconds), ...files], {
        stdio: ['ignore', 'pipe', 'ignore'],
        timeout: MOST_MS,
        killSignal: 'SIGKILL',
      })
      let output = ''
      child.stdout.on('data', (chunk) => (output += chunk))
      child.on('error', reject)
      child.on('close', (code, signal) => {
        if (signal !== null) resolve({ by: 'hang', part: 'tests', what: `more than ${seconds} s` })
        else if (code === 0) resolve(undefined)
        else {
          const name = /FAIL.*?"(.*)"/.exec(output)?.[1]
          resolve({ by: 'test', part: 'tests', what: name ?? 'a test file does not load' })
        }
      })
    })
  }
}
