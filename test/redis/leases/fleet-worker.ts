// A process of the fleet: asks for one key as fast as it is told, and writes when it was admitted: a pair of times between
// which it was. `node fleet-worker.js PORT MODE FILE PAUSE_MS`
import { openSync, writeSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createRedisLimiter } from 'millrace/redis'
import { LIMIT, WINDOW_MS } from './fleet.js'

/** By a clock that all processes of the machine share. */
const nowMs = () => Number(process.hrtime.bigint()) / 1e6
const [, , port, mode, file, pauseMs] = process.argv
const client = new Redis(Number(port), '127.0.0.1', { lazyConnect: true })
const limiter = createRedisLimiter({
  ...{ client, prefix: 'fleet', limit: LIMIT, window: `${WINDOW_MS}ms`, deadline: '50ms' },
  mode: mode as 'strict' | 'leased',
})
const to = openSync(file!, 'a')
await limiter.ready()
for (;;) {
  for (let i = 0; i < 5; i++) {
    const from = nowMs()
    const decision = limiter.checkNow('key') ?? (await limiter.check('key'))
    if (decision.allowed) writeSync(to, `${from} ${nowMs()} ${decision.source}\n`)
  }
  await pause(Number(pauseMs))
}
