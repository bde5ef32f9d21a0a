import { ALL_ADMITTED } from '#millrace/redis/script-codes.js'
import { ADMITTED_FIELDS, REFUSED_FIELDS } from '#millrace/remote/reply-codes.js'
import { type Benchmark, type Contender, type Effort, type Goal, ratioOf } from '../benchmark.js'
import { busyServerTime, LOAD, RATE, type Sent, serverTime } from './paced.js'
import { type Load, MillraceCommands } from './scripts.js'
import { redisMissing } from './server.js'
import type { Reply } from './wire.js'

const MANY = 32
/** A way of asking, by its name. */
const WAYS: Readonly<Record<string, (effort: Effort, make: (load: Load) => Sent) => Promise<number>>> = {
  'a hit a granule': (effort, make) => busyServerTime(effort, 1, make),
  '5 hits a granule': (effort, make) => busyServerTime(effort, 5, make),
  [`a hit a granule, ${RATE.toLocaleString('en')} a second`]: (effort, make) =>
    serverTime(effort, make(LOAD)),
}

const nameOf = (keys: number, way: string) => `${keys === 1 ? 'one key' : `${keys} keys`} a call, ${way}`

function asking(keysPerCall: number, way: string): Contender {
  const make = (load: Load): Sent => {
    const millrace = new MillraceCommands(load)
    return {
      source: millrace.source,
      commandsOf: (keys) =>
        Array.from({ length: Math.ceil(keys.length / keysPerCall) }, (_, i) =>
          millrace.commandOfMany(keys.slice(i * keysPerCall, (i + 1) * keysPerCall)),
        ),
      admittedIn: (reply: Reply) => admitted(reply as number[]),
    }
  }
  return {
    name: nameOf(keysPerCall, way),
    measure: async (effort) => ({ us: await WAYS[way]!(effort, make) }),
  }
}

function admitted(reply: readonly number[]): number {
  if (reply[0] === ALL_ADMITTED) return (reply.length - 3) / 2
  let count = 0
  for (let at = 0; at < reply.length; at += reply[at]! >= 0 ? ADMITTED_FIELDS : REFUSED_FIELDS)
    if (reply[at]! >= 0) count++
  return count
}

const savedBy = (way: string): Goal => ({
  label: `server time of one key a call / ${MANY} keys: ${way}`,
  unit: 'x',
  value: ratioOf(nameOf(1, way), nameOf(MANY, way), 'us'),
})
const [HIT, HITS, PACED] = Object.keys(WAYS) as [string, string, string]

export const redisManyKeys: Benchmark = {
  title: 'checkMany on Redis: 32 keys in one call, and each in a call of its own, by a busy server',
  units: { us: "microseconds of the server's processor time per decision" },
  contenders: Object.keys(WAYS).flatMap((way) => [asking(1, way), asking(MANY, way)]),
  goals: [{ ...savedBy(HIT), atLeast: 1.7 }, { ...savedBy(HITS), atLeast: 1.7 }, savedBy(PACED)],
  unavailable: redisMissing,
}
