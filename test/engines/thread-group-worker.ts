// The worker's side of a group of threads that start together on one limiter.
import { workerData } from 'node:worker_threads'
import { attachLimiter, type Decision, type Limiter } from 'millrace'
import { monotonicClock } from '#millrace/core/clock.js'
import type { InlineDecision } from '#millrace/core/inline-decision.js'
import { random } from '../algorithms/random.js'
import type { Tally, Task } from './thread-group.js'

const { shared, task, tally, gate, thread, threads, firstTick } = workerData as {
  shared: ReturnType<Limiter['share']>
  task: Task
  tally: Pick<Tally, 'admitted' | 'byTick' | 'ticks'>
  gate: Int32Array
  thread: number
  threads: number
  firstTick: number
}
const limiter = attachLimiter(shared)
const next = random(thread + 1)

function record(key: number, decision: Decision, cost: number): void {
  Atomics.add(tally.admitted, key, cost)
  for (const [rule, part] of decision.rules.entries()) {
    const tick = (part as InlineDecision).tick - firstTick
    if (tick >= 0 && tick < tally.ticks) Atomics.add(tally.byTick, rule * tally.ticks + tick, cost)
  }
}

const TASKS: Record<Task['name'], () => void> = {
  /** Checks every key in turn. All threads use the same order, so they meet on each key. */
  admit() {
    for (let key = 0; key < task.keys; key++) {
      for (let i = 0; i < task.rounds; i++) {
        const decision = limiter.check(`key ${key}`, task.cost)
        if (decision.allowed) record(key, decision, task.cost)
      }
    }
  },
  /** Checks the same keys in a different order in each thread. */
  churn() {
    for (let i = 0; i < task.rounds * task.keys; i++) {
      const key = Math.floor(next() * task.keys)
      const decision = limiter.check(`key ${key}`, task.cost)
      if (decision.allowed) record(key, decision, task.cost)
    }
  },
  /** Checks one key as fast as possible, in real time, for ten windows at least. */
  roll() {
    const untilMs = monotonicClock.now() + 220
    for (let i = 0; i < task.rounds || monotonicClock.now() < untilMs; i++) {
      const cost = 1 + (i % task.cost)
      const decision = limiter.check('key 0', cost)
      if (decision.allowed) record(0, decision, cost)
    }
  },
  /** Checks and refunds by key at one moment. The tally keeps the balance. */
  refund() {
    for (let i = 0; i < task.rounds; i++) {
      const cost = 1 + Math.floor(next() * 3)
      if (next() < 0.7) {
        if (limiter.check('key 0', cost).allowed) Atomics.add(tally.admitted, 0, cost)
      } else Atomics.sub(tally.admitted, 0, limiter.refund('key 0', cost))
    }
  },
  /** Clears the key over and over while other threads decide. */
  clear() {
    for (let i = 0; i < task.rounds; i++) {
      const pick = next()
      if (pick < 0.8) limiter.check('key 0', 1 + Math.floor(next() * 3))
      else if (pick < 0.95) limiter.clear('key 0')
      else if (pick < 0.97) limiter.block('key 0', Number.POSITIVE_INFINITY)
      else limiter.penalize('key 0', 100)
    }
  },
  /** Runs every operation that changes counts without admitting more than the limit. */
  adjust() {
    for (let i = 0; i < task.rounds; i++) {
      const pick = next()
      if (pick < 0.5) {
        const decision = limiter.check('key 0')
        if (!decision.allowed) continue
        record(0, decision, 1)
        if (pick < 0.1 && limiter.refund(decision) === 1) record(0, decision, -1)
      } else if (pick < 0.52) limiter.penalize('key 0', 1)
      else if (pick < 0.5202) limiter.block('key 0', 1)
      else if (pick < 0.54) limiter.unblock('key 0')
      else if (pick < 0.7) limiter.update('default', { limit: 40 + Math.floor(next() * 11) })
      else if (pick < 0.75) limiter.check(`another ${i}`)
      else limiter.peek('key 0').toJSON()
    }
  },
}

if (Atomics.add(gate, 0, 1) === threads - 1) Atomics.notify(gate, 0)
for (let waiting = Atomics.load(gate, 0); waiting < threads; waiting = Atomics.load(gate, 0)) {
  Atomics.wait(gate, 0, waiting)
}
Atomics.notify(gate, 0)
TASKS[task.name]()
await limiter.close()
