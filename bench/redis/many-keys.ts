import { ADMITTED_FIELDS, ALL_ADMITTED, REFUSED_FIELDS } from '#millrace/redis/script-codes.js'
import { type Benchmark, type Contender, ratioOf } from '../benchmark.js'
import { LOAD, serverTime } from './paced.js'
import { MillraceCommands } from './scripts.js'
import { redisMissing } from './server.js'

const ONE = 'one key a call'
const MANY = '32 keys a call'

function asking(name: string, keysPerCall: number): Contender {
  return {
    name,
    async measure(effort) {
      const millrace = new MillraceCommands(LOAD)
      const commandsOf = (keys: readonly string[]) => {
        const commands = []
        for (let at = 0; at < keys.length; at += keysPerCall)
          commands.push(millrace.commandOfMany(keys.slice(at, at + keysPerCall)))
        return commands
      }
      return {
        us: await serverTime(effort, millrace.source, commandsOf, (reply) => admitted(reply as number[])),
      }
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
  contenders: [asking(ONE, 1), asking(MANY, 32)],
  goals: [
    { label: `server time: ${ONE} / ${MANY}`, unit: 'x', value: ratioOf(ONE, MANY, 'us'), atLeast: 1.7 },
  ],
  unavailable: redisMissing,
}
