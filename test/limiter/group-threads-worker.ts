// A thread that checks overlapping groups, and logs the admissions.
import { workerData } from 'node:worker_threads'
import { attachLimiter, type GroupDecision, group, type Limiter } from 'millrace'
import { monotonicClock } from '#millrace/core/clock.js'
import type { InlineDecision } from '#millrace/core/inline-decision.js'
import { random } from '../algorithms/random.js'
import type { GroupTask } from './group-threads.test.js'

const { shared, tally, gate, thread, threads, firstTick, rounds, lastMs, refunds } = workerData as GroupTask
const names = Object.keys(shared)
const limiters = names.map((name) => attachLimiter(shared[name]!))
const memberOf = (i: number): [string, Limiter] => [names[i]!, limiters[i]!]
const next = random(thread + 1)
/** Groups of every two members in both orders, and of all members. */
const groups = [
  [0, 1],
  [1, 0],
  [1, 2],
  [2, 1],
  [0, 2],
  [2, 0],
  [0, 1, 2],
  [2, 1, 0],
].map((members) => ({ members, checks: group(Object.fromEntries(members.map(memberOf))) }))

function record(decision: GroupDecision, members: readonly number[], keys: readonly number[], cost: number) {
  for (const [i, member] of members.entries()) {
    const column = member * tally.keys + keys[i]!
    Atomics.add(tally.admitted, column, cost)
    if (cost > 0) Atomics.add(tally.decisions, member, 1)
    const { tick } = decision.members[names[member]!] as InlineDecision
    const at = tick - firstTick
    if (at >= 0 && at < tally.ticks) Atomics.add(tally.byTick, column * tally.ticks + at, cost)
  }
}

function checkOnce(): void {
  const { members, checks } = groups[Math.floor(next() * groups.length)]!
  const keys = members.map(() => Math.floor(next() * tally.keys))
  const named = Object.fromEntries(members.map((member, i) => [names[member]!, `key ${keys[i]}`]))
  const cost = 1 + Math.floor(next() * 3)
  const decision = checks.check(named, cost)
  if (!decision.allowed) return
  record(decision, members, keys, cost)
  if (next() < refunds && checks.refund(decision) === cost) record(decision, members, keys, -cost)
}

if (Atomics.add(gate, 0, 1) === threads - 1) Atomics.notify(gate, 0)
for (let waiting = Atomics.load(gate, 0); waiting < threads; waiting = Atomics.load(gate, 0)) {
  Atomics.wait(gate, 0, waiting)
}
for (let i = 0; i < rounds || monotonicClock.now() < lastMs; i++) checkOnce()
for (const limiter of limiters) await limiter.close()
