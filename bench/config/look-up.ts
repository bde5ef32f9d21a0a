import { setImmediate as nextTurn } from 'node:timers/promises'
import type { SyncConfigStore } from 'millrace/config/lmdb'
import { type Benchmark, type Contender, type Effort, figureOf } from '../benchmark.js'
import { randomKeys, withPolicies } from './stores.js'

const POLICIES = { full: 1_000_000, quick: 50_000 }
const BOUND_US = 10
const HIT = 'a policy of the key'
const MISS = 'no policy: the key and 3 prefixes'
const TURN = 'no policy, the first look-up of a turn'

/** The candidates of a key in a service with three levels, of which none has a policy. */
const missing = (key: string): string[] => [`org:eu:${key}:x`, `org:eu:${key}:*`, 'org:eu:*', 'org:*']

function contender(
  name: string,
  candidatesOf: (key: string) => string[],
  measure: (store: SyncConfigStore, candidates: readonly string[][]) => Promise<number> | number,
): Contender {
  return {
    name,
    measure: ({ quick, coldOperations, policies = POLICIES[quick ? 'quick' : 'full'] }: Effort) => {
      return withPolicies(policies, {}, async ({ store }) => {
        const candidates = randomKeys(policies, coldOperations).map(candidatesOf)
        for (const keys of candidates.slice(0, 20_000)) store.findNow(keys)
        return { us: await measure(store, candidates) }
      })
    },
  }
}

function inOneTurn(isFound: boolean) {
  return (store: SyncConfigStore, candidates: readonly string[][]): number => {
    let found = 0
    const startMs = performance.now()
    for (const keys of candidates) if (store.findNow(keys) !== undefined) found++
    const tookMs = performance.now() - startMs
    if (found !== (isFound ? candidates.length : 0)) throw new Error(`${found} found`)
    return (1_000 * tookMs) / candidates.length
  }
}

/** LMDB then begins a read transaction anew. */
async function inTurns(store: SyncConfigStore, candidates: readonly string[][]): Promise<number> {
  const some = candidates.slice(0, 20_000)
  let tookMs = 0
  for (const keys of some) {
    await nextTurn()
    const startMs = performance.now()
    if (store.findNow(keys) !== undefined) throw new Error('found')
    tookMs += performance.now() - startMs
  }
  return (1_000 * tookMs) / some.length
}

export const lmdbLookUp: Benchmark = {
  title: `findNow of an LMDB store with ${POLICIES.full.toLocaleString('en')} policies, random keys`,
  units: { us: 'microseconds per look-up' },
  contenders: [
    contender(HIT, (key) => [key, 'user:*'], inOneTurn(true)),
    contender(MISS, missing, inOneTurn(false)),
    contender(TURN, missing, inTurns),
  ],
  goals: [HIT, MISS, TURN].map((name) => ({
    label: name,
    unit: 'us',
    value: (round) => figureOf(round, name, 'us'),
    atMost: BOUND_US,
  })),
  rounds: { full: 2, quick: 1 }, // each contender loads its policies first
}
