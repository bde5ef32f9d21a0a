// A process that writes until it is killed.
import { openSync, writeSync } from 'node:fs'
import { lmdbConfig } from 'millrace/config/lmdb'
import { random } from '../../algorithms/random.js'
import { batchKeysOf, type Job, keysOf, LANES, lineOf, policyOf } from './job.js'

const { path, log, writer, after, seed } = JSON.parse(process.argv[2]!) as Job
const next = random(seed)
const file = openSync(log, 'a')
const store = lmdbConfig({ path })
let number = after
let acknowledged = 0

/** Each line is handed to the system at once, so it outlives this process. */
async function noted(key: string, value: number, write: () => Promise<unknown>): Promise<void> {
  writeSync(file, lineOf('begun', key, value))
  await write()
  writeSync(file, lineOf('acknowledged', key, value))
  if (acknowledged++ === 0) process.send!('ready')
}

async function writeOne(key: string): Promise<void> {
  if (next() < 0.2) return noted(key, 0, () => store.delete(key))
  const value = ++number
  return noted(key, value, () => store.put(key, policyOf(value)))
}

async function writeBatches(): Promise<void> {
  for (;;) {
    const value = ++number
    const policy = policyOf(value)
    const entries = batchKeysOf(writer).map((key) => ({ key, policy }))
    await noted('batch', value, () => store.putMany!(entries))
  }
}

async function writeLane(lane: number): Promise<void> {
  const keys = keysOf(writer, lane)
  for (;;) await writeOne(keys[Math.floor(next() * keys.length)]!)
}

process.once('disconnect', () => process.exit(1))
await Promise.all([writeBatches(), ...Array.from({ length: LANES }, (_, lane) => writeLane(lane))])
