// Events between a request of a pending `wait` call and its reply. The test sends each reply itself.

import { type Decision, MillraceError } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { monotonicClock } from '#millrace/core/clock.js'
import { WordWatch } from '#millrace/core/word-watch.js'
import { WaitQueues } from '#millrace/engines/wait-queues.js'
import { resolved, settled, turn, until } from '../limiter/support.js'

const CLOSED = new MillraceError('ERR_MILLRACE_CLOSED', 'limiter', 'a closed one', 'an open one')
const admitted = { allowed: true, retryAfterMs: 0 } as Decision
const refusedFor = (retryAfterMs: number) => ({ allowed: false, retryAfterMs }) as Decision

let open: WaitQueues | undefined
test.after.each(() => open?.close(CLOSED)) // otherwise a failed test leaves a timer of an hour

interface Question {
  answer(decision: Decision): void
  fail(error: unknown): void
}

/** WaitQueues of one key, on the machine's clock, and their requests. */
function waitersOfOneKey() {
  const waiters = new WaitQueues(monotonicClock, new WordWatch(new Int32Array(new SharedArrayBuffer(4)), 0))
  open = waiters
  const questions: Question[] = []
  const given: Decision[] = []
  const want = {
    lo: 1,
    hi: 2,
    decide: () => new Promise<Decision>((answer, fail) => questions.push({ answer, fail })),
    giveBack: (decision: Decision) => given.push(decision),
    never: () => new Error('never'),
  }
  const asked = (count: number) => until(() => questions.length === count, `question ${count}`)
  return { waiters, want, questions, given, asked }
}

test('a refused call retries at once if a wake-up came while its reply was pending', async () => {
  const { waiters, want, questions, asked } = waitersOfOneKey()
  const waiting = waiters.wait(want)
  waiters.wake(1, 2)
  questions[0]!.answer(refusedFor(3_600_000))
  await asked(2)
  questions[1]!.answer(admitted)
  assert.is(await resolved(waiting), admitted)
})

test('a reply that fails after its call was aborted does not affect the calls behind it', async () => {
  const { waiters, want, questions, asked } = waitersOfOneKey()
  const controllers = [new AbortController(), new AbortController()]
  const aborted = controllers.map(({ signal }) => settled(waiters.wait(want, signal)))
  const third = waiters.wait(want)
  for (const controller of controllers) controller.abort('enough')
  questions[0]!.fail(new Error('lost'))
  for (const outcome of aborted) assert.equal(await outcome, { status: 'rejected', reason: 'enough' })
  await asked(2)
  questions[1]!.answer(admitted)
  assert.is(await resolved(third), admitted)
  await turn()
  assert.is(questions.length, 2, 'an aborted call sends no request')
})

test('an admission that arrives after its call was aborted is given back, and the next call sends its own request', async () => {
  const { waiters, want, questions, given, asked } = waitersOfOneKey()
  const controller = new AbortController()
  const first = settled(waiters.wait(want, controller.signal))
  const second = waiters.wait(want)
  controller.abort('enough')
  questions[0]!.answer(admitted)
  await first
  await asked(2)
  assert.equal(given, [admitted])
  questions[1]!.fail(new Error('lost'))
  assert.match(String(((await settled(second)) as PromiseRejectedResult).reason), 'lost')
})

test('a refusal that arrives after its call was aborted sets no timer', async () => {
  const { waiters, want, questions, given, asked } = waitersOfOneKey()
  const controller = new AbortController()
  const first = settled(waiters.wait(want, controller.signal))
  const second = settled(waiters.wait(want))
  controller.abort('enough')
  questions[0]!.answer(refusedFor(3_600_000))
  await first
  await asked(2)
  questions[1]!.answer(refusedFor(Number.POSITIVE_INFINITY))
  assert.match(String(((await second) as PromiseRejectedResult).reason), 'never')
  assert.equal(given, [])
})

test('close rejects a call whose reply is pending, and the reply causes no further request', async () => {
  const { waiters, want, questions, given } = waitersOfOneKey()
  const waiting = settled(waiters.wait(want))
  waiters.close(CLOSED)
  assert.equal(await waiting, { status: 'rejected', reason: CLOSED })
  questions[0]!.answer(admitted)
  await turn()
  assert.equal([questions.length, given], [1, [admitted]])
})

test('an emptied queue serves calls that join in the same turn', async () => {
  const { waiters, want, questions, asked } = waitersOfOneKey()
  const controller = new AbortController()
  const first = settled(waiters.wait(want, controller.signal))
  questions[0]!.answer(refusedFor(3_600_000))
  await turn()
  controller.abort()
  const second = waiters.wait(want)
  await first
  await asked(2)
  questions[1]!.answer(admitted)
  assert.is(await resolved(second), admitted)
})

test.run()
