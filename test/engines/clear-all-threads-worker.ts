// A thread that decides by two rules, or the thread that clears all keys meanwhile.
import { workerData } from 'node:worker_threads'
import { attachLimiter } from 'millrace'
import { SharedManualClock } from '#millrace/core/clock.js'
import { random } from '../algorithms/random.js'
import type { ClearTask } from './clear-all-threads.test.js'

const { shared, isClearing, seed, keys, events, counters, byEvent, byClear } = workerData as ClearTask
const EVENT = 0
const CLEAR = 1
const DECISIONS = 2
const END = 3
const limiter = attachLimiter(shared)
const next = random(seed + 1)

/** Records an admission that no event overlapped, and one that no clear overlapped. */
function decide(): void {
  const key = Math.floor(next() * keys)
  const cost = 1 + Math.floor(next() * 2)
  const [event, clear] = [Atomics.load(counters, EVENT), Atomics.load(counters, CLEAR)]
  const { allowed } = limiter.check(`key ${key}`, cost)
  const isIn = (counter: number, before: number) =>
    before % 2 === 0 && Atomics.load(counters, counter) === before
  if (allowed && isIn(EVENT, event)) Atomics.add(byEvent, (event / 2) * keys + key, cost)
  if (allowed && isIn(CLEAR, clear)) Atomics.add(byClear, (clear / 2) * keys + key, cost)
  Atomics.add(counters, DECISIONS, 1)
  Atomics.notify(counters, DECISIONS)
}

/** Waits for this many decisions, more than one by each thread, so that most began after the last event. */
function awaitDecisions(many: number): void {
  const from = Atomics.load(counters, DECISIONS)
  for (let now = from; now - from < many; now = Atomics.load(counters, DECISIONS)) {
    Atomics.wait(counters, DECISIONS, now)
  }
}

function clearAndMove(): void {
  const clock = new SharedManualClock(shared.clock as SharedArrayBuffer)
  for (let i = 0; i < events; i++) {
    awaitDecisions(40)
    const clears = next() < 0.5
    Atomics.add(counters, EVENT, 1)
    if (clears) {
      Atomics.add(counters, CLEAR, 1)
      limiter.clearAll()
      Atomics.add(counters, CLEAR, 1)
    } else clock.advance(11) // a window of the first rule
    Atomics.add(counters, EVENT, 1)
  }
  Atomics.store(counters, END, 1)
}

if (isClearing) clearAndMove()
else while (Atomics.load(counters, END) === 0) decide()
await limiter.close()
