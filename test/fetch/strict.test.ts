// run: also-full, also-long, modules
// A network of which the test says when a call arrives and when its answer does, on a clock that the test turns.
import { mock } from 'node:test'
import { attachLimiter, createLimiter, type Limiter, type LimiterOptions, manualClock } from 'millrace'
import { limitedFetch, type OutgoingOptions } from 'millrace/fetch'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hostOf, type OwnLimiter } from '#millrace/fetch/host.js'
import fc from '../fast-check.js'
import { settled, turn, until } from '../limiter/support.js'
import { sized } from '../size.js'
import { mostInAnyWindow } from './support.js'

const LIMIT = 3
const WINDOW_MS = 600
const URL = 'http://server.test/'

/** A call on its way. */
interface Wire {
  readonly sentMs: number
  hasArrived: boolean
  answer(): void
  fail(): void
}

/** The network between the calls and a server that counts them when they arrive. */
class Network {
  readonly clock = manualClock(1_000_000)
  readonly arrivalsMs: number[] = []
  wires: Wire[] = []
  sent = 0

  readonly fetch = (_: string | globalThis.URL | Request, __?: RequestInit): Promise<Response> =>
    new Promise((resolve, reject) => {
      this.sent++
      this.wires.push({
        sentMs: this.clock.now(),
        hasArrived: false,
        answer: () => resolve(new Response('ok')),
        fail: () => reject(new TypeError('the connection is lost')),
      })
    })

  arrive(wire: Wire): void {
    if (wire.hasArrived) return
    wire.hasArrived = true
    this.arrivalsMs.push(this.clock.now())
  }

  /** The call has its answer, or its connection is lost after it arrived. */
  async finish(wire: Wire, how: 'answer' | 'fail' = 'answer'): Promise<void> {
    this.arrive(wire)
    wire[how]()
    this.wires = this.wires.filter((each) => each !== wire)
    await turn()
  }

  get most(): number {
    return mostInAnyWindow(this.arrivalsMs, WINDOW_MS)
  }
}

type Step =
  | { readonly do: 'call'; readonly by: number }
  | { readonly do: 'arrive' | 'answer' | 'fail'; readonly which: number }
  | { readonly do: 'advance'; readonly ms: number }

const steps = (mostMs: number) =>
  fc.array(
    fc.oneof(
      { weight: 3, arbitrary: fc.record({ do: fc.constant('call' as const), by: fc.nat(1) }) },
      {
        weight: 5,
        arbitrary: fc.record({
          do: fc.constantFrom('arrive' as const, 'answer' as const, 'answer' as const, 'fail' as const),
          which: fc.nat(50),
        }),
      },
      { weight: 4, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.nat(mostMs) }) },
    ),
    { minLength: 30, maxLength: 80 },
  )

/** Plays steps on limiters that share their counts. Returns the most arrivals in a window. */
async function play(
  network: Network,
  limiters: readonly Limiter[],
  script: readonly Step[],
  options: Partial<OutgoingOptions>,
  longestMs = Number.POSITIVE_INFINITY,
): Promise<number> {
  const calls = limiters.map((limiter) => limitedFetch(network.fetch, { limiter, ...options }))
  for (const step of script) {
    if (step.do === 'call') {
      calls[step.by % calls.length]!(URL).catch((error) => {
        if (!(error instanceof TypeError) && error.code !== 'ERR_MILLRACE_CLOSED') throw error
      })
    } else if (step.do === 'advance') {
      for (const wire of [...network.wires])
        if (network.clock.now() + step.ms - wire.sentMs >= longestMs) await network.finish(wire)
      network.clock.advance(step.ms)
    } else {
      const wire = network.wires[step.which % Math.max(network.wires.length, 1)]
      if (wire !== undefined && step.do === 'arrive') network.arrive(wire)
      else if (wire !== undefined) await network.finish(wire, step.do as 'answer' | 'fail')
    }
    await turn()
  }
  for (const wire of [...network.wires]) await network.finish(wire)
  await Promise.all(limiters.map((limiter) => limiter.close()))
  return network.most
}

const RUNS = sized({ quick: 30, full: 300, long: 2_000 })
const rule = { limit: LIMIT, window: WINDOW_MS }

for (const [name, options] of [
  ['a sliding window', rule],
  [
    'several rules',
    {
      rules: [
        { ...rule, name: 'burst' },
        { name: 'longer', limit: 8, window: 2_400 },
      ],
    },
  ],
] as const) {
  test(`with ${name}, no window of the server has more than the limit, however late calls arrive`, async () => {
    let sent = 0
    await fc.assert(
      fc.asyncProperty(steps(WINDOW_MS * 1.5), async (script) => {
        const network = new Network()
        const limiter = createLimiter({ ...options, clock: network.clock } as LimiterOptions)
        const most = await play(network, [limiter], script, {})
        sent += network.sent
        assert.ok(most <= LIMIT, `${most} in one window`)
      }),
      { numRuns: RUNS },
    )
    assert.ok(sent > RUNS * 3, `only ${sent} calls were sent`)
  })
}

test('the same holds for threads or processes that share a limiter, while they keep renewing their charges', async () => {
  await fc.assert(
    fc.asyncProperty(steps(WINDOW_MS / 2), async (script) => {
      const network = new Network()
      const limiter = createLimiter({ ...rule, clock: network.clock })
      const other = attachLimiter(limiter.share())
      const most = await play(network, [limiter, other], script, {}, WINDOW_MS)
      assert.ok(most <= LIMIT, `${most} in one window`)
    }),
    { numRuns: RUNS },
  )
})

test('calls that count from their sending only do exceed the limit of the server: the judge sees it', async () => {
  const result = await fc.check(
    fc.asyncProperty(steps(WINDOW_MS * 1.5), async (script) => {
      const network = new Network()
      const limiter = createLimiter({ ...rule, clock: network.clock })
      assert.ok((await play(network, [limiter], script, { strict: false })) <= LIMIT)
    }),
    { numRuns: 2_000, endOnFailure: true },
  )
  assert.ok(result.failed)
})

test('a call counts as long as it is on its way, for many windows', async () => {
  const network = new Network()
  const limiter = createLimiter({ ...rule, clock: network.clock })
  const call = limitedFetch(network.fetch, { limiter })
  const calls = Array.from({ length: LIMIT + 1 }, () => call(URL))
  for (let i = 0; i < 20; i++) {
    network.clock.advance(WINDOW_MS * 1.1)
    await turn()
    assert.is(network.sent, LIMIT)
  }
  await network.finish(network.wires[0]!)
  await turn()
  assert.is(network.sent, LIMIT, 'the answered call counts for a window')
  network.clock.advance(WINDOW_MS * 1.1)
  await turn()
  assert.is(network.sent, LIMIT + 1)
  for (const wire of [...network.wires]) await network.finish(wire)
  await Promise.all(calls)
})

test('a timer renews the charge of a call on its way, for other threads and processes', async () => {
  mock.timers.enable({ apis: ['setInterval'] })
  const network = new Network()
  const limiter = createLimiter({ ...rule, clock: network.clock })
  const other = attachLimiter(limiter.share())
  const pending = limitedFetch(network.fetch, { limiter })(URL)
  await turn()
  for (let i = 0; i < 20; i++) {
    network.clock.advance(WINDOW_MS / 4)
    mock.timers.tick(WINDOW_MS / 4)
    assert.is(other.usage('server.test'), 1)
  }
  await network.finish(network.wires[0]!)
  await pending
  network.clock.advance(WINDOW_MS * 1.02)
  mock.timers.tick(WINDOW_MS * 1.02)
  assert.is(other.usage('server.test'), 0)
  mock.timers.reset()
})

test('a call whose charge has left the window before the thread went on is decided again', async () => {
  const network = new Network()
  const { clock } = network
  const limiter = createLimiter({ limit: 1, window: WINDOW_MS, clock })
  const other = attachLimiter(limiter.share())
  const { wait } = limiter
  let isBusy = true
  limiter.wait = async (key, options) => {
    const decision = await wait.call(limiter, key, options)
    if (isBusy) {
      isBusy = false
      clock.advance(WINDOW_MS * 1.1)
      assert.ok(other.check('server.test').allowed)
    }
    return decision
  }
  limiter.check('server.test')
  const pending = limitedFetch(network.fetch, { limiter })(URL)
  clock.advance(WINDOW_MS * 1.1)
  await until(() => !isBusy, 'the first decision')
  for (let i = 0; i < 5; i++) await turn()
  assert.is(network.sent, 0)
  clock.advance(WINDOW_MS * 1.1)
  await until(() => network.sent === 1, 'the second decision')
  await network.finish(network.wires[0]!)
  await pending
})

test('a call that is answered at once leaves the window one window after its answer, and its host is forgotten', async () => {
  const network = new Network()
  const limiter = createLimiter({ ...rule, clock: network.clock })
  const call = limitedFetch(network.fetch, { limiter })
  for (let i = 0; i < 10; i++) {
    const calls = Array.from({ length: LIMIT }, () => call(URL))
    await turn()
    assert.is(limiter.usage('server.test'), LIMIT)
    const host = hostOf(limiter as OwnLimiter, 'server.test')
    for (const wire of [...network.wires]) await network.finish(wire)
    await Promise.all(calls)
    assert.is.not(hostOf(limiter as OwnLimiter, 'server.test'), host)
    assert.is(limiter.usage('server.test'), LIMIT)
    network.clock.advance(WINDOW_MS * 1.02)
    assert.is(limiter.usage('server.test'), 0)
  }
  assert.is(network.sent, 10 * LIMIT)
})

test('a lost connection ends a call like an answer', async () => {
  const network = new Network()
  const limiter = createLimiter({ ...rule, clock: network.clock })
  const call = limitedFetch(network.fetch, { limiter })
  const lost = settled(call(URL))
  await turn()
  network.clock.advance(WINDOW_MS / 2)
  await network.finish(network.wires[0]!, 'fail')
  const outcome = await lost
  assert.is(outcome.status, 'rejected')
  assert.is((outcome as PromiseRejectedResult).reason.message, 'the connection is lost')
  network.clock.advance(WINDOW_MS * 0.9)
  assert.is(limiter.usage('server.test'), 1)
  network.clock.advance(WINDOW_MS * 0.2)
  assert.is(limiter.usage('server.test'), 0)
})

test.run()
