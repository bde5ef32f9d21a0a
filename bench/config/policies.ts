import { readFileSync } from 'node:fs'
import { type Benchmark, type Contender, type Effort, type Figures, figureOf } from '../benchmark.js'
import { type Loaded, randomKeys, withPolicies } from './stores.js'

const POLICIES = { full: 10_000_000, quick: 100_000 }
/** Shuffled keys and several stores are compared with fewer policies. */
const FEWER = 10

export const policiesOf = ({ quick, policies }: Effort): number =>
  policies ?? POLICIES[quick ? 'quick' : 'full']

const ORDERED = 'one store'
const FEWER_ORDERED = 'one store, a tenth'
const SHUFFLED = 'one store, a tenth, loaded in random order'
const several = (count: number) => `${count} stores by shardedConfig, a tenth`

function contender(
  name: string,
  part: number,
  options: { stores?: number; isShuffled?: boolean },
): Contender {
  return {
    name,
    measure: (effort) => {
      const policies = Math.ceil(policiesOf(effort) / part)
      const keys = randomKeys(policies, effort.coldOperations)
      return withPolicies(policies, options, (loaded) => measure(policies, keys, loaded))
    },
  }
}

function measure(policies: number, keys: readonly string[], { store, loadMs, bytes }: Loaded): Figures {
  const startMs = performance.now()
  for (const key of keys) if (store.findNow([key]) === undefined) throw new Error(`no policy: ${key}`)
  const tookMs = performance.now() - startMs
  return {
    policies,
    loadS: loadMs / 1_000,
    mb: bytes / 1e6,
    bytes: bytes / policies,
    thousandASecond: keys.length / tookMs,
    rssMb: residentMb('VmRSS'),
    ownMb: residentMb('RssAnon'),
  }
}

/** Memory of this process, by Linux. */
function residentMb(name: 'VmRSS' | 'RssAnon'): number {
  const [, kib] = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(readFileSync('/proc/self/status', 'utf8'))!
  return (Number(kib) * 1_024) / 1e6
}

export const lmdbPolicies: Benchmark = {
  title: `an LMDB store of ${POLICIES.full.toLocaleString('en')} policies (--policies), and several stores`,
  units: {
    policies: 'policies',
    loadS: 'seconds of putMany, each batch on disk',
    mb: 'MB on disk',
    bytes: 'bytes on disk per policy',
    thousandASecond: 'thousand look-ups a second, of random keys',
    rssMb: "MB resident, with the pages of the file, which are the system's cache",
    ownMb: 'MB resident of the process itself',
  },
  contenders: [
    contender(ORDERED, 1, {}),
    contender(FEWER_ORDERED, FEWER, {}),
    contender(SHUFFLED, FEWER, { isShuffled: true }),
    contender(several(2), FEWER, { stores: 2 }),
    contender(several(4), FEWER, { stores: 4 }),
  ],
  goals: [2, 4].map((count) => ({
    label: `look-ups: ${several(count)} / ${FEWER_ORDERED}`,
    unit: 'x',
    value: (round) =>
      figureOf(round, several(count), 'thousandASecond') / figureOf(round, FEWER_ORDERED, 'thousandASecond'),
  })),
  rounds: { full: 1, quick: 1 }, // ten million policies take minutes to load
  unavailable: () => (process.platform === 'linux' ? undefined : 'it reads /proc/self/status'),
}
