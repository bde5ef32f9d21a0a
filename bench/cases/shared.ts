import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter } from 'millrace'
import { neededAddon } from '#millrace/native/addon.js'
import { type Benchmark, type Contender, ratioOf } from '../benchmark.js'
import { direct } from '../contenders.js'
import { cachedKeys, inOrder, randomOrder } from '../keys.js'
import { millrace } from '../millrace.js'
import { LIMIT, WINDOW_MS } from '../peers.js'
import { timeDecisions } from '../timing.js'

const KEYS = 10_000

const MEMORY = 'a SharedArrayBuffer'
const IN_MEMORY = 'a file in memory (/dev/shm)'
const ON_DISK = 'a file on a disk'

const workload = ({ operations }: { operations: number }) => ({
  keyAt: cachedKeys(KEYS),
  order: randomOrder(KEYS, operations),
  filled: inOrder(KEYS),
})

export const shared: Benchmark = {
  title: `shared files: check(key) over ${KEYS.toLocaleString('en')} hot keys, counts stored in`,
  units: { ns: 'nanoseconds per decision' },
  contenders: [
    direct(MEMORY, workload, () => millrace(KEYS)),
    inFile(IN_MEMORY, existsSync('/dev/shm') ? '/dev/shm' : tmpdir()),
    inFile(ON_DISK, tmpdir()),
  ],
  goals: [
    {
      target: 'P10',
      label: 'a file in memory / a SharedArrayBuffer',
      unit: 'x',
      value: ratioOf(IN_MEMORY, MEMORY),
      atMost: 1.5,
    },
    {
      target: 'P10',
      label: 'a file on a disk / a SharedArrayBuffer',
      unit: 'x',
      value: ratioOf(ON_DISK, MEMORY),
      atMost: 1.5,
    },
  ],
  unavailable() {
    try {
      return neededAddon('bench', '').files === undefined ? 'this system has no shared files' : undefined
    } catch {
      return 'the addon is not built; run npm run build:native'
    }
  },
}

function inFile(name: string, parent: string): Contender {
  return {
    name,
    measure(effort) {
      const folder = mkdtempSync(join(parent, 'millrace-bench-'))
      try {
        const limiter = createLimiter({
          limit: LIMIT,
          window: WINDOW_MS,
          maxKeys: KEYS,
          shared: { file: join(folder, 'limits') },
        })
        return timeDecisions(workload(effort), (key) => limiter.check(key).allowed)
      } finally {
        rmSync(folder, { recursive: true })
      }
    },
  }
}
