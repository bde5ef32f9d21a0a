// Threads of both sides on one arena: the worker's part.
import { workerData } from 'node:worker_threads'
import { attachLimiter, type ManualClock } from 'millrace'
import { SharedManualClock } from '#millrace/core/clock.js'
import { random } from '../algorithms/oracle.js'
import type { Work } from './both-sides.js'

const { shared, keys, phases, cost, startMs, turnMs, haste, gate, admitted, threads } = workerData as Work
const limiter = attachLimiter(shared)
const clock: ManualClock = new SharedManualClock(shared.clock as SharedArrayBuffer)
const place = Atomics.add(gate, 1, 1)
const next = random(place + 1)
if (place === threads - 1) Atomics.notify(gate, 1)
for (let there = place + 1; there < threads; there = Atomics.load(gate, 1)) Atomics.wait(gate, 1, there)

const names = Array.from({ length: keys }, (_, i) => `key ${i}`)
for (;;) {
  const phase = Atomics.load(gate, 0)
  if (phase >= phases) break
  // All keys, beginning with another one each time, and some of them twice.
  const from = Math.floor(next() * keys)
  const order = Array.from({ length: keys + 20 }, (_, i) => (from + i) % keys)
  const nowMs = clock.now()
  const { allowed } = limiter.checkMany(
    order.map((key) => names[key]!),
    cost,
  )
  if (clock.now() === nowMs) {
    const turn = Math.round((nowMs - startMs) / turnMs)
    for (const [i, key] of order.entries()) {
      if (allowed[i] === 1) Atomics.add(admitted, turn * keys + key, cost)
    }
  }
  if (allowed.includes(1) && next() >= haste) continue
  if (Atomics.compareExchange(gate, 0, phase, phase + 1) === phase && phase + 1 < phases)
    clock.advance(turnMs)
}
