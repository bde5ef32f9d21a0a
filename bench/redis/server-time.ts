import { type Benchmark, type Contender, ratioOf } from '../benchmark.js'
import { KEYS, LOAD, serverTime } from './paced.js'
import { expressStore, UpstashCommands } from './package-scripts.js'
import {
  CountingCommands,
  flexible,
  gcra,
  leastGcra,
  MillraceCommands,
  type Scripted,
  timeOnly,
} from './scripts.js'
import { redisMissing } from './server.js'
import type { Reply } from './wire.js'

const OURS = 'Millrace'
const COUNTER = 'Millrace, sliding counter'
const LOG = 'Millrace, sliding log'
const GCRA = 'GCRA, answers as redis_rate'
const LEAST_GCRA = 'GCRA, the least work'
const FLEXIBLE = 'rate-limiter-flexible 11 (fixed window)'
const EXPRESS = 'rate-limit-redis 6 (fixed window)'
const UPSTASH = "@upstash/ratelimit 2 (approximate, caller's clock)"
const TIME = 'TIME alone'

function running(name: string, make: () => Scripted | Promise<Scripted>): Contender {
  return {
    name,
    async measure(effort) {
      const scripted = await make()
      const commandOf = scripted.isDated ? (key: string) => scripted.commandOf(key) : prepared(scripted)
      const commandsOf = (keys: readonly string[]) => keys.map(commandOf)
      const admittedIn = (reply: Reply) => Number(scripted.isAllowed(reply))
      return { us: await serverTime(effort, { source: scripted.source, commandsOf, admittedIn }) }
    },
  }
}

/** One command for each key, made before the server is measured. */
function prepared(scripted: Scripted): (key: string) => Buffer {
  const commands = new Map<string, Buffer>()
  for (let i = 0; i < KEYS; i++) commands.set(`user:${i}`, scripted.commandOf(`user:${i}`))
  return (key) => commands.get(key)!
}

export const redisServerTime: Benchmark = {
  title: `the server's time for a decision: ${KEYS.toLocaleString('en')} keys at 60 % of the limit, 60 granules, about one hit in each`,
  units: { us: "microseconds of the server's processor time per decision" },
  contenders: [
    running(OURS, () => new MillraceCommands(LOAD)),
    running(COUNTER, () => new CountingCommands('sliding-counter', LOAD)),
    running(LOG, () => new CountingCommands('sliding-log', LOAD)),
    running(GCRA, () => gcra(LOAD)),
    running(LEAST_GCRA, () => leastGcra(LOAD)),
    running(FLEXIBLE, () => flexible(LOAD)),
    running(EXPRESS, () => expressStore(LOAD)),
    running(UPSTASH, () => UpstashCommands.create(LOAD)),
    running(TIME, timeOnly),
  ],
  goals: [
    {
      label: `server time: ${OURS} / ${GCRA}`,
      unit: 'x',
      value: ratioOf(OURS, GCRA, 'us'),
      atMost: 1.2,
    },
    { label: `server time: ${OURS} / ${LEAST_GCRA}`, unit: 'x', value: ratioOf(OURS, LEAST_GCRA, 'us') },
    { label: `server time: ${COUNTER} / ${OURS}`, unit: 'x', value: ratioOf(COUNTER, OURS, 'us') },
    { label: `server time: ${LOG} / ${OURS}`, unit: 'x', value: ratioOf(LOG, OURS, 'us') },
    { label: `server time: ${OURS} / ${FLEXIBLE}`, unit: 'x', value: ratioOf(OURS, FLEXIBLE, 'us') },
    { label: `server time: ${OURS} / ${EXPRESS}`, unit: 'x', value: ratioOf(OURS, EXPRESS, 'us') },
    { label: `server time: ${OURS} / ${UPSTASH}`, unit: 'x', value: ratioOf(OURS, UPSTASH, 'us') },
    { label: `server time: ${OURS} / ${TIME}`, unit: 'x', value: ratioOf(OURS, TIME, 'us') },
  ],
  unavailable: redisMissing,
}
