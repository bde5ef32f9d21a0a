// npm run dev -- stress:redis: limiters on a Redis server of its own, in real time or in a test's time.
import { Redis } from 'ioredis'
import { readFlags } from '../../long-runs/flags.js'
import { inCommas, progressOn } from '../../long-runs/progress.js'
import { runExact } from '../../redis/exact.js'
import { startRedis } from '../../redis/servers.js'
import { runExpiry } from './expiry.js'
import { runStress, summaryOf } from './run.js'

const MINUTE_S = 60

const flags = readFlags('npm run dev -- stress:redis [options]', {
  minutes: { fallback: 0, least: 0, most: 1_440, help: 'how long four processes use up limits in real time' },
  operations: { fallback: 0, least: 0, most: 1e9, help: "random operations in a test's time, against a log" },
  keys: { fallback: 0, least: 0, most: 1e8, help: 'keys to be charged, until all have expired' },
  seed: { fallback: 1, least: 0, most: 1e6, help: 'seed of the operations' },
})
const { operations, keys, seed } = flags
const minutes = flags.minutes + operations + keys === 0 ? 1 : flags.minutes
const progress = progressOn(process.stderr)
let hasFailed = false

if (minutes > 0) {
  progress.note(`${minutes} minutes, seed ${seed}`)
  const found = await runStress(MINUTE_S * minutes, seed, progress)
  for (const complaint of found.complaints) progress.note(complaint)
  console.log(summaryOf(found))
  hasFailed ||= found.complaints.length > 0
}

if (operations > 0) {
  progress.note(`${inCommas(operations)} operations, seed ${seed}`)
  const server = await startRedis()
  const client = new Redis(server.port, '127.0.0.1')
  try {
    const found = await runExact(client, operations, seed)
    console.log(
      `${inCommas(found.operations)} random operations as each algorithm is defined: ${inCommas(found.admitted)} ` +
        `admitted, ${inCommas(found.refused)} refused, ${inCommas(found.givenBack)} given back, no difference`,
    )
  } finally {
    client.disconnect()
    await server.stop()
  }
}

if (keys > 0) {
  progress.note(`${inCommas(keys)} keys`)
  const { chargedMs, most, longestTtlMs, listed, left, windowMs, granuleMs } = await runExpiry(keys)
  console.log(
    `${inCommas(keys)} keys charged in ${(chargedMs / 1_000).toFixed(1)} s, ${inCommas(most)} on the server, ` +
      `to expire within ${inCommas(longestTtlMs)} ms (window ${inCommas(windowMs)} ms): ` +
      `DBSIZE ${inCommas(listed)} a window and two granules of ${inCommas(granuleMs)} ms later, ${inCommas(left)} after a SCAN`,
  )
  hasFailed ||= left > 0
}

process.exitCode = hasFailed ? 1 : 0
