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
/** Decisions a second, where they are paced. */
export const RATE = 20_000
const GRANULES = 60

/** The load at which keys are hit about `hits` times in each granule. They are at 60 % of their limit then. */
function loadOf(hits: number, rate: number): Load {
  const granuleMs = Math.max(1, Math.round((1_000 * KEYS * hits) / rate))
  return { limit: 100 * hits, windowMs: GRANULES * granuleMs, granules: GRANULES }
}
/** That of a paced measurement: about one hit a granule, so most hits begin one, which takes the server longest. */
export const LOAD = loadOf(1, RATE)

/** Decisions that show how fast the server is. */
const TRIAL = 50_000
/** Decisions of {@link Effort} for each timed hit of a key. */
const OPERATIONS_PER_HIT = 4_000

/** What is sent, and how many of a reply's decisions are admissions. */
export interface Sent {
  readonly source: string
  readonly commandsOf: CommandsOf
  admittedIn(reply: Reply): number
}

/**
 * Sends decisions for keys in random order, in pipelines, at a fixed rate: at full speed, a window would be over
 * before its granules are. Returns the server's processor time for each decision.
 * @throws Error if more than one in a hundred replies is not an admission
 */
export function serverTime(effort: Effort, sent: Sent): Promise<number> {
  return withRedis(async ({ port }) => {
    const wire = await Wire.connect(port)
    try {
      return await timeOf(wire, effort, sent, LOAD, RATE)
    } finally {
      wire.close()
    }
  })
}

/**
 * The same as fast as the server answers, one pipeline after another, so that it is busy and its caches stay warm. The
 * window is so long that keys are hit about so often in a granule, at the rate that a trial has shown.
 */
export function busyServerTime(effort: Effort, hits: number, make: (load: Load) => Sent): Promise<number> {
  return withRedis(async ({ port }) => {
    const wire = await Wire.connect(port)
    try {
      const trial = make(LOAD)
      await wire.send('SCRIPT', 'LOAD', trial.source)
      const startMs = performance.now()
      await send(wire, TRIAL, trial.commandsOf, Number.POSITIVE_INFINITY)
      const rate = (1_000 * TRIAL) / (performance.now() - startMs)
      await wire.send('FLUSHALL')
      const load = loadOf(hits, rate)
      return await timeOf(wire, effort, make(load), load, Number.POSITIVE_INFINITY)
    } finally {
      wire.close()
    }
  })
}

async function timeOf(
  wire: Wire,
  { operations }: Effort,
  { source, commandsOf, admittedIn }: Sent,
  { limit }: Load,
  rate: number,
): Promise<number> {
  await wire.send('SCRIPT', 'LOAD', source)
  const timedHits = Math.max(1, Math.round(operations / OPERATIONS_PER_HIT))
  const windowHits = 0.6 * limit // so that a whole window of them counts
  await send(wire, windowHits * KEYS, commandsOf, rate)
  const beforeUs = await wire.cpuUs()
  const replies = await send(wire, timedHits * KEYS, commandsOf, rate)
  const usedUs = (await wire.cpuUs()) - beforeUs
  const admitted = replies.reduce((sum: number, reply) => sum + admittedIn(reply), 0)
  if (admitted < 0.99 * timedHits * KEYS) throw new Error(`only ${admitted} were admitted`)
  return usedUs / (timedHits * KEYS)
}

/** Sends at most `rate` decisions a second. */
async function send(wire: Wire, count: number, commandsOf: CommandsOf, rate: number): Promise<Reply[]> {
  const order = randomOrder(KEYS, count)
  const replies: Reply[] = []
  const startMs = performance.now()
  for (let at = 0; at < count; at += PIPELINE) {
    const dueMs = startMs + (1_000 * at) / rate
    if (dueMs > performance.now()) await sleep(dueMs - performance.now())
    const keys = Array.from(order.subarray(at, at + PIPELINE), (key) => `user:${key}`)
    replies.push(...(await wire.pipeline(commandsOf(keys))))
  }
  return replies
}
