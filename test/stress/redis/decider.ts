// A process of the run: asks at a steady rate and logs its admissions until it is told to stop.
import { openSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { createRedisLimiter } from 'millrace/redis'
import type { RemoteDecision } from '#millrace/remote/remote-decision.js'
import { random } from '../../algorithms/random.js'
import { CLIENTS } from '../../redis/clients.js'
import { averageCost, type Counts, type Job, KEYS, LOAD, PROCESSES, RULES, sharedMs } from './job.js'
import { LogWriter } from './log.js'

const TURN_MS = 5
/** Requests that wait for a reply at the same time. Above it the process asks no more until some have settled. */
const MOST_PENDING = 2_000

const job = JSON.parse(process.argv[2]!) as Job
const next = random(job.seed)
const log = new LogWriter(openSync(job.file, 'w'))
const client = CLIENTS[job.library](job.port)
const shares = RULES.map((rule, index) => ({
  index,
  rule,
  limiter: createRedisLimiter({
    client,
    prefix: `stress ${index}`,
    limit: rule.limit,
    window: rule.windowMs,
    granularity: rule.windowMs / rule.granules,
    deadline: '10s', // so that nearly all charges are in the log, also on a busy machine
  }),
  /** Requests in a millisecond. */
  rate: (LOAD * KEYS * rule.limit) / rule.windowMs / averageCost(rule) / PROCESSES,
  owed: 0,
}))
const counts: Counts = { decisions: 0, outages: 0 }
/** The rules that have refused nothing yet. */
const unused = new Set(RULES.keys())
const pending = new Set<Promise<void>>()
let isStopping = false
process.once('message', () => {
  isStopping = true
})
process.once('disconnect', () => process.exit()) // the run has ended before
for (const { limiter } of shares) await limiter.ready()

for (let lastMs = sharedMs(); !isStopping; await pause(TURN_MS)) {
  const nowMs = sharedMs()
  for (const share of shares) {
    share.owed += share.rate * (nowMs - lastMs)
    for (; share.owed >= 1; share.owed--) {
      if (pending.size >= MOST_PENDING) continue
      const call = ask(share)
      pending.add(call)
      void call.finally(() => pending.delete(call))
    }
  }
  lastMs = nowMs
}
await Promise.all(pending)
for (const { limiter } of shares) await limiter.close()
log.flush()
process.send!(counts)
process.disconnect()

async function ask({ index, rule, limiter }: (typeof shares)[number]): Promise<void> {
  const key = Math.floor(next() * KEYS)
  const cost = 1 + Math.floor(next() * rule.mostCost)
  const sentMs = sharedMs()
  const decision = (await limiter.check(`key ${key}`, cost)) as RemoteDecision
  counts.decisions++
  if (decision.source !== 'redis') counts.outages++
  if (!decision.allowed) {
    if (decision.source === 'redis' && unused.delete(index) && unused.size === 0) process.send!('full')
    return
  }
  const [granule] = decision.parts[0]!.receipt!
  log.add({ rule: index, key, cost, granule: granule!, sentMs, receivedMs: sharedMs() })
}
