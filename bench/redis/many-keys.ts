import { ADMITTED_FIELDS, ALL_ADMITTED, REFUSED_FIELDS } from '#millrace/redis/script-codes.js'
import { type Benchmark, type Contender, ratioOf } from '../benchmark.js'
import { loadOf, serverTime } from './paced.js'
import { MillraceCommands } from './scripts.js'
import { redisMissing } from './server.js'
import type { Reply } from './wire.js'

const MANY = 32
/** Hits of a key in each granule: the first one of a granule takes the server longest. */
const HITS = [1, 5]
const nameOf = (keys: number, hits: number) =>
  `${keys === 1 ? 'one key' : `${keys} keys`} a call, ${hits === 1 ? 'a hit' : `${hits} hits`} a granule`

function asking(keysPerCall: number, hits: number): Contender {
  const load = loadOf(hits)
  return {
    name: nameOf(keysPerCall, hits),
    async measure(effort) {
      const millrace = new MillraceCommands(load)
      const commandsOf = (keys: readonly string[]) => {
        const commands = []
        for (let at = 0; at < keys.length; at += keysPerCall)
          commands.push(millrace.commandOfMany(keys.slice(at, at + keysPerCall)))
        return commands
      }
      const admittedIn = (reply: Reply) => admitted(reply as number[])
      return { us: await serverTime(effort, millrace.source, commandsOf, admittedIn, load) }
    },
  }
}

function admitted(reply: readonly number[]): number {
  if (reply[0] === ALL_ADMITTED) return (reply.length - 3) / 2
  let count = 0
  for (let at = 0; at < reply.length; at += reply[at]! >= 0 ? ADMITTED_FIELDS : REFUSED_FIELDS)
    if (reply[at]! >= 0) count++
  return count
}

export const redisManyKeys: Benchmark = {
  title: 'checkMany on Redis: 32 keys in one call, and each in a call of its own',
  units: { us: "microseconds of the server's processor time per decision" },
  contenders: HITS.flatMap((hits) => [asking(1, hits), asking(MANY, hits)]),
  goals: HITS.map((hits) => ({
    label: `server time: ${nameOf(1, hits)} / ${nameOf(MANY, hits)}`,
    unit: 'x',
    value: ratioOf(nameOf(1, hits), nameOf(MANY, hits), 'us'),
    atLeast: 1.7,
  })),
  unavailable: redisMissing,
}
