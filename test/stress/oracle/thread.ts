// Worker threads that start together on one limiter: the worker's side.
import { parentPort, workerData } from 'node:worker_threads'
import { Log } from '../log.js'
import { Decider } from './decider.js'
import type { Job } from './job.js'
import type { Shape } from './shapes.js'

/**
 * Operations between two pins. Refunds happen within the same turn, before the sweep judges their row.
 */
const TURN = 1_024

const job = workerData as Job
const { thread, shape, decisions } = job
const decider = new Decider(job)
const { next, limiter, counts } = decider
const log = new Log(job.memory)

const OPERATIONS: Record<Shape['also'], () => void> = {
  nothing() {
    decider.check(decider.pickKey(), decider.pickCost(), false)
  },
  refunds() {
    const pick = next()
    if (pick < 0.004) decider.giveBackHeld()
    else if (pick < 0.02) decider.peek(decider.pickKey(), decider.pickCost())
    else decider.check(decider.pickKey(), decider.pickCost(), pick < 0.2)
  },
  /** Makes an operation that changes counts without exceeding the limit, or changes the limit. */
  adjusts() {
    const pick = next()
    const key = `key ${decider.pickKey()}`
    if (pick < 0.9) decider.check(decider.pickKey(), decider.pickCost(), pick < 0.2)
    else if (pick < 0.92) decider.giveBackHeld()
    else if (pick < 0.93) limiter.penalize(key, 1)
    else if (pick < 0.9302) limiter.block(key, 1)
    else if (pick < 0.95) limiter.unblock(key)
    else if (pick < 0.96) limiter.update('default', { limit: limitBelow(shape.options.limit) })
    else if (pick < 0.97) limiter.peek(key).toJSON()
    else if (pick < 0.98) limiter.usage(key)
    else decider.check(decider.pickKey(), decider.pickCost(), true)
  },
}

function limitBelow(limit: number): number {
  return limit - Math.floor((next() * limit) / 5)
}

log.pin(thread, 0)
Atomics.wait(job.gate, 0, 0)
const operate = OPERATIONS[shape.also]
for (let logged = 0; counts.decisions < decisions; ) {
  decider.begin()
  for (let i = 0; i < TURN && counts.decisions < decisions; i++) operate()
  log.make(thread, counts.decisions - logged)
  logged = counts.decisions
}
decider.giveBackHeld()
log.unpin(thread)
await limiter.close()
parentPort!.postMessage(counts)
