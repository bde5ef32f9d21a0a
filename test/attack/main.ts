/**
 * `npm run dev -- attack`: runs all attacks in full and prints their figures. `-- --part flood` (or collide,
 * overrun) runs one. `--seed` repeats a run, except for times, memory and the limiter that draws its own hash
 * seed.
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { setsFor, WAYS_PER_SET } from '#millrace/memory/layout.js'
import { readFlag } from '../long-runs/flags.js'
import { progressOn } from '../long-runs/progress.js'
import { collide, type Play } from './collide.js'
import { LIMIT as FLOOD_LIMIT, flood, HUNDREDFOLD, TENFOLD } from './flood.js'
import { type Latencies, percentiles } from './latency.js'
import { newKeys } from './new-keys.js'
import { LIMIT as OVERRUN_LIMIT, overrun } from './overrun.js'

const PARTS = ['flood', 'collide', 'overrun'] as const
/**
 * The most growth of resident memory after all ways were taken; it includes the young generation of the heap.
 */
const MOST_GROWTH_MB = 64
/**
 * The desired bound of a decision's time under attack, relative to ordinary load. It is reported, not
 * enforced.
 */
const DESIRED = 2

const { values } = parseArgs({
  options: {
    part: { type: 'string', multiple: true, default: [...PARTS] },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    keys: { type: 'string', default: '10000000' },
    colliding: { type: 'string', default: '1000000' },
    windows: { type: 'string', default: '2000' },
  },
})
const unknown = values.part.find((part) => !PARTS.includes(part as (typeof PARTS)[number]))
if (unknown !== undefined) throw new Error(`--part ${unknown}: one of ${PARTS.join(', ')}`)
const seed = whole('seed', 0)
const { at: showProgress, note: line } = progressOn(process.stderr)
const forbidden: string[] = []
const summary: string[] = []
const forbid = (isSo: boolean, what: string) => {
  if (isSo) forbidden.push(what)
}

line(`seed ${seed}`)
if (values.part.includes('flood')) {
  for (const keysPerRoom of [HUNDREDFOLD, TENFOLD]) runFlood(whole('keys', 1_000), keysPerRoom)
}
if (values.part.includes('collide')) runCollide(whole('colliding', 1_000))
if (values.part.includes('overrun')) {
  runNewKeys()
  runOverrun(whole('windows', 1))
}
const verdict = forbidden.length === 0 ? 'held' : `BROKEN: ${forbidden.join('; ')}`
console.log(`attack ${verdict}; ${summary.join('; ')}; seed ${seed}`)
process.exitCode = forbidden.length === 0 ? 0 : 1

function runFlood(keys: number, keysPerRoom: number): void {
  const name = `flood, ${keysPerRoom} keys per key of capacity`
  const report = flood(keys, keysPerRoom, seed, showProgress)
  const { tries, extra, sprayedAdmitted, charged, alone, ordinary, during, arenaMb, rssMb } = report
  const most = setsFor(keys / keysPerRoom) * WAYS_PER_SET * FLOOD_LIMIT
  const grownMb = rssMb.end - rssMb.warm
  const times = (before: Latencies) => during.percentileUs(0.99) / before.percentileUs(0.99)
  const keepsWay = keysPerRoom < FLOOD_LIMIT
  forbid(keepsWay && extra > 0, `${extra} extra admissions of a victim that keeps its way`)
  forbid(charged > most, `${charged} units charged to all keys, more than the table's capacity`)
  forbid(grownMb > MOST_GROWTH_MB, `${grownMb.toFixed(1)} MB growth of resident memory`)
  line(`${name}: ${keys} random keys, ${tries} attempts of a victim at its limit, ${extra} admitted`)
  line(
    `${name}: ${sprayedAdmitted} of the random keys admitted, ${charged} units charged to all keys, ` +
      `at most ${most} by the table's capacity`,
  )
  const [atFirst, warm, end] = [rssMb.before, rssMb.warm, rssMb.end].map((mb) => mb.toFixed(1))
  line(
    `${name}: resident memory ${atFirst} MB before, ${warm} with all ${arenaMb.toFixed(1)} MB in use, ${end} at the end`,
  )
  line(
    `${name}: a decision on a key in use, alone: ${percentiles(alone)}; in a table half full of keys in use: ` +
      `${percentiles(ordinary)}; during the flood: ${percentiles(during)}`,
  )
  const isWithin = times(ordinary) <= DESIRED ? 'yes' : 'no'
  line(
    `${name}: p99 ${times(alone).toFixed(2)} times that without other keys, ${times(ordinary).toFixed(2)} times that under ordinary load; ` +
      `at most ${DESIRED}: ${isWithin}`,
  )
  summary.push(
    `${keys} random keys, ${keysPerRoom} per key of capacity: ${extra} extra admissions, ${grownMb.toFixed(1)} MB grown, ` +
      `p99 x${times(ordinary).toFixed(2)} (x${times(alone).toFixed(2)} of keys alone)`,
  )
}

function runCollide(count: number): void {
  const { keys, sets, crowded, bound, known, own, randomFullest } = collide(count, seed, showProgress)
  forbid(own.fullest > bound, `${own.fullest} keys in the fullest set under the limiter's own seed`)
  const show = (name: string, { fullest, evictedLive, strangersRefused, decisions }: Play) =>
    line(
      `collide: ${name}: ${fullest} keys in the fullest set, ${evictedLive} evicted, ` +
        `${strangersRefused} of ${keys / 10} strangers refused, a decision ${percentiles(decisions)}`,
    )
  line(`collide: ${keys} keys for ${crowded} of ${sets} sets`)
  show('the known seed', known)
  show('a seed of its own', own)
  line(
    `collide: as many random keys: ${randomFullest} in the fullest set, at most ${bound} with a probability of 1 - 10^-9`,
  )
  summary.push(
    `${keys} colliding keys: fullest set ${known.fullest} by the known seed, ${own.fullest} by another`,
  )
}

/** The table of docs/how-to/sizing.md. */
function runNewKeys(): void {
  for (const [maxKeys, limit] of [
    [10_000, 5],
    [10_000, 20],
    [10_000, 100],
    [100_000, 5],
  ] as const) {
    for (const onFull of ['evict', 'deny', 'allow'] as const) {
      const report = newKeys(onFull, limit, maxKeys, seed, showProgress)
      const { ways, few, half, most, admitted, leftBefore, leftAfter, evictedLive, noRoom } = report
      line(
        `new keys: ${onFull}, limit ${limit}, maxKeys ${maxKeys}, ${ways} ways: 1 % not counted after ${few} new keys, ` +
          `50 % after ${half}, 99 % after ${most}; ${admitted} admitted; a key in use has ${leftAfter.toFixed(1)} % of its limit ` +
          `left, ${leftBefore.toFixed(1)} before; ${evictedLive} evicted live, ${noRoom} without room`,
      )
      const most4All = onFull === 'evict' ? ways * limit : ways
      forbid(admitted > most4All, `${admitted} new keys admitted in one window, ${most4All} fit`)
    }
  }
}

function runOverrun(windows: number): void {
  for (const [keys, rounds] of [
    [40, windows],
    [2_000, Math.ceil(windows / 20)],
  ] as const) {
    for (const onFull of ['deny', 'allow', 'evict'] as const) {
      try {
        const report = overrun(onFull, keys, rounds, seed, showProgress)
        const { admitted, uncounted, noRoom, early, evicted, most, over, ways } = report
        line(
          `overrun: ${onFull}, ${keys} keys, ${ways} ways, ${rounds} windows: ${admitted} admitted and ` +
            `${uncounted} uncounted, ${noRoom} without room, ${early} early, ${evicted} evicted, ` +
            `at most ${most} of ${OVERRUN_LIMIT} in a window, ${over} beyond`,
        )
        if (onFull === 'evict') summary.push(`${keys} keys evicting: at most ${most} of ${OVERRUN_LIMIT}`)
      } catch (error) {
        forbid(true, `${onFull}, ${keys} keys: ${(error as Error).message}`)
      }
    }
  }
}

function whole(name: 'seed' | 'keys' | 'colliding' | 'windows', least: number): number {
  return readFlag(name, values[name], { fallback: least, least, most: Number.MAX_SAFE_INTEGER })
}
