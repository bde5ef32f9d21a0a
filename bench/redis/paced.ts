import { setTimeout as sleep } from 'node:timers/promises'
import type { Effort } from '../benchmark.js'
import { randomOrder } from '../keys.js'
import type { Load } from './scripts.js'
import { withRedis } from './server.js'
import { type Reply, Wire } from './wire.js'

export const KEYS = 1_000
/** Commands for each key are prepared, or made of several keys. */
export type CommandsOf = (keys: readonly string[]) => Buffer[]

const PIPELINE = 128
/** Decisions a second: each key is hit about once in a granule. */
const RATE = 20_000
export const GRANULES = 60
/** With one hit in each granule, keys are at 60 % of their limit. */
export const LOAD: Load = { limit: 100, windowMs: (1_000 * GRANULES * KEYS) / RATE, granules: GRANULES }
/** Hits of each key before the timed ones, so that a whole window of them counts. */
const WARM_UP_HITS = GRANULES
/** Decisions of {@link Effort} for each timed hit of a key. */
const OPERATIONS_PER_HIT = 4_000

/**
 * Sends decisions for keys in random order, in pipelines, at a fixed rate: at full speed, a window would be over
 * before its granules are. Returns the server's processor time for each decision.
 * @throws Error if more than one in a hundred replies is not an admission
 */
export function serverTime(
  { operations }: Effort,
  source: string,
  commandsOf: CommandsOf,
  admittedIn: (reply: Reply) => number,
): Promise<number> {
  return withRedis(async ({ port }) => {
    const wire = await Wire.connect(port)
    await wire.send('SCRIPT', 'LOAD', source)
    const timedHits = Math.max(1, Math.round(operations / OPERATIONS_PER_HIT))
    await sendPaced(wire, Math.min(timedHits, WARM_UP_HITS) * KEYS, commandsOf)
    const beforeUs = await wire.cpuUs()
    const replies = await sendPaced(wire, timedHits * KEYS, commandsOf)
    const usedUs = (await wire.cpuUs()) - beforeUs
    wire.close()
    const admitted = replies.reduce((sum: number, reply) => sum + admittedIn(reply), 0)
    if (admitted < 0.99 * timedHits * KEYS) throw new Error(`only ${admitted} were admitted`)
    return usedUs / (timedHits * KEYS)
  })
}

async function sendPaced(wire: Wire, count: number, commandsOf: CommandsOf): Promise<Reply[]> {
  const order = randomOrder(KEYS, count)
  const replies: Reply[] = []
  const startMs = performance.now()
  for (let at = 0; at < count; at += PIPELINE) {
    const dueMs = startMs + (1_000 * at) / RATE
    if (dueMs > performance.now()) await sleep(dueMs - performance.now())
    const keys = Array.from(order.subarray(at, at + PIPELINE), (key) => `user:${key}`)
    replies.push(...(await wire.pipeline(commandsOf(keys))))
  }
  return replies
}
