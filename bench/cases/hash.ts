import { Hasher } from '#millrace/memory/hash.js'
import { type Benchmark, type Contender, type Effort, figureOf, type Goal } from '../benchmark.js'
import { direct } from '../contenders.js'
import { cachedKeys, freshKeys, KEY_LENGTH, randomOrder } from '../keys.js'
import type { Decide } from '../timing.js'

const KEYS = 10_000
const LENGTHS = [KEY_LENGTH, 40] // an IPv4 address; an IPv6 address or an API key

/** The least work that depends on every character of a key. */
const summing = (): Decide<string> => (key) => {
  let sum = 0
  for (let i = 0; i < key.length; i++) sum += key.charCodeAt(i)
  return sum > 0
}

/** A fingerprint's `lo` is never 0. */
const hashing = (): Decide<string> => {
  const hasher = new Hasher(0x01234567, 0x89abcdef | 0)
  return (key) => {
    hasher.hash(key)
    return hasher.lo !== 0
  }
}

const fetching = (): Decide<string> => (key) => key.length > 0

export const hash: Benchmark = {
  title: 'hashing a key, compared with reading its characters',
  units: { ns: 'nanoseconds per key' },
  contenders: LENGTHS.flatMap(contendersAt),
  goals: LENGTHS.flatMap(goalsAt),
}

function contendersAt(length: number): Contender[] {
  const order = ({ operations }: Effort) => randomOrder(KEYS, operations)
  return (['fresh strings', 'cached strings'] as const).flatMap((strings) => {
    const keys = strings === 'cached strings' ? cachedKeys : freshKeys
    const workload = (effort: Effort) => ({ keyAt: keys(KEYS, length), order: order(effort) })
    return [
      direct(nameOf('fetching', length, strings), workload, fetching),
      direct(nameOf('summing', length, strings), workload, summing),
      direct(nameOf('hashing', length, strings), workload, hashing),
    ]
  })
}

function goalsAt(length: number): Goal[] {
  return ['fresh strings', 'cached strings'].flatMap((strings) =>
    ['summing', 'hashing'].map((work) => ({
      label: `${work} ${length} characters, ${strings}, fetching subtracted`,
      unit: 'ns' as const,
      value: (round) =>
        figureOf(round, nameOf(work, length, strings)) - figureOf(round, nameOf('fetching', length, strings)),
    })),
  )
}

function nameOf(work: string, length: number, strings: string): string {
  return `${work} ${length} characters, ${strings}`
}
