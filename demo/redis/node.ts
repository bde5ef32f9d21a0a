/** A process of the demo: a limiter and its load. `nodes.ts` starts it with a {@link NodeTask}. */
import { Redis } from 'ioredis'
import { createRedisLimiter } from 'millrace/redis'
import { HOST } from '../../test/redis/ports.js'
import type { NodeOrder, NodeReport, NodeTask } from './messages.js'
import { admittedAt } from './server-time.js'

const KEY = 'everyone'
const EVERY_MS = 5

const { port, requestsPerSecond, windowMs, granularityMs, ...options }: NodeTask = JSON.parse(
  process.argv[2]!,
)
// The limiter makes a connection of its own as this client would.
const client = new Redis(port, HOST, { lazyConnect: true })
const limiter = createRedisLimiter({ ...options, client, window: windowMs, granularity: granularityMs })

const byRedisMs: number[] = []
const byShareMs: number[] = []
const calls = new Set<Promise<void>>()
let requests = 0
let overLimit = 0
let withoutAnswer = 0
let contradictions = 0
let isAway = false
let load: NodeJS.Timeout | undefined

async function request(): Promise<void> {
  const sentMs = Date.now()
  const { allowed, source, resetMs } = await limiter.check(KEY)
  if (isAway && source === 'redis') {
    isAway = false
    report({ type: 'back' })
  }
  if (source === 'outage') withoutAnswer++
  else if (!allowed) overLimit++
  else if (source === 'local') byShareMs.push(performance.timeOrigin + performance.now())
  else {
    const atMs = admittedAt({ sentMs, receivedMs: Date.now(), resetMs, granularityMs })
    if (atMs === undefined) contradictions++
    else byRedisMs.push(atMs)
  }
}

function start(): void {
  const startMs = performance.now()
  load = setInterval(() => {
    const due = ((performance.now() - startMs) * requestsPerSecond) / 1_000
    for (; requests < due; requests++) {
      const call = request()
      calls.add(call)
      void call.finally(() => calls.delete(call))
    }
  }, EVERY_MS)
}

async function stop(): Promise<void> {
  clearInterval(load)
  await Promise.all(calls)
  await limiter.close()
  const times = { byRedisMs: Float64Array.from(byRedisMs), byShareMs: Float64Array.from(byShareMs) }
  report({ type: 'stopped', log: { requests, overLimit, withoutAnswer, contradictions, ...times } })
  process.disconnect()
}

process.on('message', (order: NodeOrder) => {
  if (order === 'load') start()
  else if (order === 'resumed') isAway = true
  else void stop()
})
process.on('disconnect', () => process.exit()) // the demo has ended, or was ended
await limiter.ready()
report({ type: 'ready' })

function report(message: NodeReport): void {
  process.send!(message)
}
