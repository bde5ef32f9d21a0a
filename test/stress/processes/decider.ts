// A process of the run: decides on the limiter's file at full speed and logs its admissions until it is
// killed.
import { openLimiter } from 'millrace'
import { monotonicClock } from '#millrace/core/clock.js'
import type { InlineDecision } from '#millrace/core/inline-decision.js'
import { shapeFor } from '#millrace/memory/layout.js'
import { random } from '../../algorithms/random.js'
import { GRANULE_MS, type Job, KEYS, OTHER_KEYS, OTHERS_SHARE, optionsFor, WINDOW_MS } from './job.js'
import { Log } from './log.js'

const ROUND = 64
const job = JSON.parse(process.argv[2]!) as Job
const log = new Log(job.log, job.ticks)
const limiter = await openLimiter(optionsFor(job.file))
const { modulus } = shapeFor(WINDOW_MS, WINDOW_MS / GRANULE_MS, 2)
const next = random(job.seed)

while (!log.isStopped) {
  for (let i = 0; i < ROUND; i++) decide()
  log.make(job.slot, ROUND)
}
await limiter.close()

function decide(): void {
  if (next() < OTHERS_SHARE) {
    limiter.check(`other ${Math.floor(next() * OTHER_KEYS)}`)
    return
  }
  const key = Math.floor(next() ** 2 * KEYS)
  const cost = 1 + Math.floor(next() * 3)
  const decision = limiter.check(`key ${key}`, cost) as InlineDecision
  if (!decision.allowed) return
  const tick = tickOf(decision.tick)
  // The machine does not restart during the run, so the file's time must not move: that would return quota
  // early, which the windows do not show.
  if (tick > tickOf(Math.floor(monotonicClock.now() / GRANULE_MS)))
    throw new Error('the time of the file is ahead')
  log.enter(key, tick, cost)
  if (next() < 0.05) {
    log.enter(key, tick, -cost)
    limiter.refund(decision)
  }
}

function tickOf(word: number): number {
  const since = ((word >>> 0) - job.firstTick) % modulus
  return since < 0 ? since + modulus : since
}
