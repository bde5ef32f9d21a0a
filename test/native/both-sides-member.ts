// One thread of `both-sides.ts`.
import { workerData } from 'node:worker_threads'
import { attachLimiter, type ManualClock } from 'millrace'
import { SharedManualClock } from '#millrace/core/clock.js'
import { random } from '../algorithms/random.js'
import type { Work } from './both-sides.js'

const { shared, keys, phases, cost, startMs, turnMs, haste, calm, gate, admitted, threads } =
  workerData as Work
const limiter = attachLimiter(shared)
const clock: ManualClock = new SharedManualClock(shared.clock as SharedArrayBuffer)
const place = Atomics.add(gate, 1, 1)
const next = random(place + 1)
if (place === threads - 1) Atomics.notify(gate, 1)
for (let there = place + 1; there < threads; there = Atomics.load(gate, 1)) Atomics.wait(gate, 1, there)

const names = Array.from({ length: keys }, (_, i) => `key ${i}`)
const handles = names.map((name) => limiter.handle(name))

/** Decides the keys in one batch, or one by one, by handle or by string. */
function decide(order: readonly number[]): ArrayLike<number> {
  const how = next()
  if (how < 0.5) {
    return limiter.checkMany(
      order.map((key) => names[key]!),
      cost,
    ).allowed
  }
  const from = how < 0.75 ? names : handles
  return order.map((key) => (limiter.check(from[key]!, cost).allowed ? 1 : 0))
}

/** Decides on all keys, and records the admissions if the clock stood. Returns whether all keys were refused. */
function decideOnAll(): boolean {
  // All keys, from another first key each time, and some of them twice.
  const from = Math.floor(next() * keys)
  const order = Array.from({ length: keys + 20 }, (_, i) => (from + i) % keys)
  const nowMs = clock.now()
  const allowed = decide(order)
  if (clock.now() === nowMs) {
    const turn = Math.round((nowMs - startMs) / turnMs)
    for (const [i, key] of order.entries()) {
      if (allowed[i] === 1) Atomics.add(admitted, turn * keys + key, cost)
    }
  }
  return !Array.from(allowed).includes(1)
}

/** Waits for all threads. The last one advances the clock before any other goes on. */
function turnCalmly(phase: number): void {
  if (Atomics.add(gate, 2, 1) < threads - 1) {
    while (Atomics.load(gate, 0) === phase) Atomics.wait(gate, 0, phase)
    return
  }
  while (!decideOnAll()); // alone
  Atomics.store(gate, 2, 0)
  if (phase + 1 < phases) clock.advance(turnMs)
  Atomics.store(gate, 0, phase + 1)
  Atomics.notify(gate, 0)
}

for (;;) {
  const phase = Atomics.load(gate, 0)
  if (phase >= phases) break
  const isCalm = phase % calm.every >= calm.every - calm.turns
  if (!decideOnAll() && (isCalm || next() >= haste)) continue
  if (isCalm) {
    turnCalmly(phase)
    continue
  }
  if (Atomics.compareExchange(gate, 0, phase, phase + 1) === phase && phase + 1 < phases)
    clock.advance(turnMs)
}
