// Events between a request of a pending `wait` call and its reply. The test sends each reply itself.

import { type Decision, MillraceError } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { monotonicClock } from '#millrace/core/clock.js'
import { WordWatch } from '#millrace/core/word-watch.js'
import { WaitQueues } from '#millrace/engines/waits/wait-queues.js'
import { resolved, settled, turn, until } from '../limiter/support.js'

const CLOSED = new MillraceError('ERR_MILLRACE_CLOSED', 'limiter', 'a closed one', 'an open one')
const admitted = { allowed: true, retryAfterMs: 0 } as Decision
const refusedFor = (retryAfterMs: number) => ({ allowed: false, retryAfterMs }) as Decision

let open: WaitQueues | undefined
test.after.each(() => open?.close(CLOSED)) // otherwise a failed test leaves a timer of an hour

interface Pending {
  reply(decision: Decision): void
  fail(error: unknown): void
}

/** WaitQueues of one key, on the machine's clock, and their requests. */
function queuesOfOneKey() {
  const queues = new WaitQueues(monotonicClock, new WordWatch(new Int32Array(new SharedArrayBuffer(4)), 0))
  open = queues
  const requests: Pending[] = []
  const givenBack: Decision[] = []
  const request = {
    lo: 1,
    hi: 2,
    decide: () => new Promise<Decision>((reply, fail) => requests.push({ reply, fail })),
    giveBack: (decision: Decision) => givenBack.push(decision),
    neverError: () => new Error('never'),
  }
  const requested = (count: number) => until(() => requests.length === count, `request ${count}`)
  return { queues, request, requests, givenBack, requested }
}

test('a refused call retries at once if a wake-up came while its reply was pending', async () => {
  const { queues, request, requests, requested } = queuesOfOneKey()
  const waiting = queues.wait(request)
  queues.wake(1, 2)
  requests[0]!.reply(refusedFor(3_600_000))
  await requested(2)
  requests[1]!.reply(admitted)
  assert.is(await resolved(waiting), admitted)
})

test('a reply that fails after its call was aborted does not affect the calls behind it', async () => {
  const { queues, request, requests, requested } = queuesOfOneKey()
  const controllers = [new AbortController(), new AbortController()]
  const aborted = controllers.map(({ signal }) => settled(queues.wait(request, signal)))
  const third = queues.wait(request)
  for (const controller of controllers) controller.abort('enough')
  requests[0]!.fail(new Error('lost'))
  for (const outcome of aborted) assert.equal(await outcome, { status: 'rejected', reason: 'enough' })
  await requested(2)
  requests[1]!.reply(admitted)
  assert.is(await resolved(third), admitted)
  await turn()
  assert.is(requests.length, 2, 'an aborted call sends no request')
})

test('an admission that arrives after its call was aborted is givenBack back, and the next call sends its own request', async () => {
  const { queues, request, requests, givenBack, requested } = queuesOfOneKey()
  const controller = new AbortController()
  const first = settled(queues.wait(request, controller.signal))
  const second = queues.wait(request)
  controller.abort('enough')
  requests[0]!.reply(admitted)
  await first
  await requested(2)
  assert.equal(givenBack, [admitted])
  requests[1]!.fail(new Error('lost'))
  assert.match(String(((await settled(second)) as PromiseRejectedResult).reason), 'lost')
})

test('a refusal that arrives after its call was aborted sets no timer', async () => {
  const { queues, request, requests, givenBack, requested } = queuesOfOneKey()
  const controller = new AbortController()
  const first = settled(queues.wait(request, controller.signal))
  const second = settled(queues.wait(request))
  controller.abort('enough')
  requests[0]!.reply(refusedFor(3_600_000))
  await first
  await requested(2)
  requests[1]!.reply(refusedFor(Number.POSITIVE_INFINITY))
  assert.match(String(((await second) as PromiseRejectedResult).reason), 'never')
  assert.equal(givenBack, [])
})

test('close rejects a call whose reply is pending, and the reply causes no further request', async () => {
  const { queues, request, requests, givenBack } = queuesOfOneKey()
  const waiting = settled(queues.wait(request))
  queues.close(CLOSED)
  assert.equal(await waiting, { status: 'rejected', reason: CLOSED })
  requests[0]!.reply(admitted)
  await turn()
  assert.equal([requests.length, givenBack], [1, [admitted]])
})

test('an emptied queue serves calls that join in the same turn', async () => {
  const { queues, request, requests, requested } = queuesOfOneKey()
  const controller = new AbortController()
  const first = settled(queues.wait(request, controller.signal))
  requests[0]!.reply(refusedFor(3_600_000))
  await turn()
  controller.abort()
  const second = queues.wait(request)
  await first
  await requested(2)
  requests[1]!.reply(admitted)
  assert.is(await resolved(second), admitted)
})

test.run()
