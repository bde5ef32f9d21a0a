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
/** Decisions a second. */
const RATE = 20_000
export const GRANULES = 60

/** The load at which a key is hit about so often in each granule. Keys are at 60 % of their limit. */
export const loadOf = (hits: number): Load => ({
  limit: 100 * hits,
  windowMs: (1_000 * GRANULES * KEYS * hits) / RATE,
  granules: GRANULES,
})
/** The load that takes the server longest: most hits begin a granule. */
export const LOAD = loadOf(1)
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
  { windowMs }: Load = LOAD,
): Promise<number> {
  // A whole window of hits, so that they count.
  const warmUpHits = (windowMs * RATE) / (1_000 * KEYS)
  return withRedis(async ({ port }) => {
    const wire = await Wire.connect(port)
    await wire.send('SCRIPT', 'LOAD', source)
    const timedHits = Math.max(1, Math.round(operations / OPERATIONS_PER_HIT))
    await sendPaced(wire, Math.min(4 * timedHits, warmUpHits) * KEYS, commandsOf)
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
