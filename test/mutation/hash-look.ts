// A first look at mutated code of `memory/hash.js`, thousands of times as quick as a test file: whether some keys still have the
// fingerprints that the tests' own HalfSipHash gives them.
import { createContext, runInContext } from 'node:vm'
import { random } from '../algorithms/oracle.js'
import { fingerprint } from '../memory/half-sip-hash.js'
import type { Verdict } from './explorer.js'

const KEYS = 40
const MOST_MS = 2_000

interface Case {
  readonly seeds: readonly [number, number]
  readonly key: string
  readonly expected: readonly [lo: number, hi: number]
}

/** Of every length up to so many: half of them with nothing above 255 in them. */
const cases = Array.from({ length: 2 * KEYS }, (_, i) => caseOf(random(i), 1 + (i >> 1), i % 2 === 0))

function caseOf(next: () => number, length: number, isWide: boolean): Case {
  const word = () => Math.floor(next() * 2 ** 32) | 0
  const seeds = [word(), word()] as const
  const code = () => Math.floor(next() ** 2 * (isWide ? 0x10000 : 0x100))
  const key = String.fromCharCode(...Array.from({ length }, code))
  return { seeds, key, expected: fingerprint(...seeds, key) }
}

/** In a context of its own, and no longer than so long: a mutated loop may have no end. */
export function lookAtHash(code: string): Verdict | undefined {
  const context = createContext({ cases })
  const says = `cases.find(({ seeds, key, expected }) => {
    const hasher = new Hasher(...seeds)
    hasher.hash(key)
    return hasher.lo !== expected[0] || hasher.hi !== expected[1]
  })?.key`
  try {
    const key = runInContext(`${code.replace('export class', 'class')}\n${says}`, context, {
      timeout: MOST_MS,
    })
    return key === undefined ? undefined : verdict('load', `another fingerprint of ${JSON.stringify(key)}`)
  } catch (error) {
    const isEndless = (error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
    return verdict(isEndless ? 'hang' : 'load', String(error))
  }
}

const verdict = (by: 'load' | 'hang', what: string): Verdict => ({ by, part: 'fingerprints', what })
