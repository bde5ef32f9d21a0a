// The servers of `npm run bench:instructions`, without valgrind: each sets its headers.
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { costOf, eventsIn } from '../../bench/instructions/cachegrind.js'
import { sendRequests } from '../../bench/instructions/client.js'
import { instructionsOf } from '../../bench/instructions/instructions.js'
import { FRAMEWORKS, type FrameworkName, modesOf, startServer } from '../../bench/instructions/servers.js'

const portOf = (server: Server): number => (server.address() as AddressInfo).port

/** @fastify/rate-limit has older headers. */
function remainingOf({ headers }: Response): number {
  const item = /r=(\d+)/.exec(headers.get('RateLimit') ?? '')?.[1]
  return Number(item ?? headers.get('x-ratelimit-remaining'))
}

const NAMES = Object.keys(FRAMEWORKS) as FrameworkName[]

for (const framework of NAMES)
  for (const mode of modesOf(framework))
    test(`${framework}, ${mode}: requests on one connection are served and counted`, async () => {
      const server = await startServer(framework, mode)
      try {
        await sendRequests(portOf(server), 3)
        const ask = () => fetch(`http://127.0.0.1:${portOf(server)}/`, { headers: { 'x-api-key': 'user:1' } })
        const [first, second] = [remainingOf(await ask()), remainingOf(await ask())]
        assert.ok(first > 900_000 && first < 1_000_000, `${first}`)
        assert.is(second, mode === 'constant headers' ? first : first - 1)
      } finally {
        server.closeAllConnections()
        server.close()
      }
    })

test('an answer other than 200 is an error', async () => {
  const { createServer } = await import('node:http')
  const server = createServer((_, response) => response.writeHead(500).end('hello\n'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const error = await sendRequests(portOf(server), 1).catch((reason: unknown) => reason)
    assert.match((error as Error).message, '500')
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

test('the sums of cachegrind are read by the names of its events', () => {
  const events = eventsIn(
    'desc: x\nevents: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw\nfn=a\n1 2\nsummary: 9 8 7 6 5 4 3 2 1\n',
  )
  assert.is(events.Ir, 9)
  assert.is(events.DLmw, 1)
  assert.throws(() => eventsIn('events: Ir\n'), 'no summary')
})

test('a cost is the difference of two runs, for each request', () => {
  const [before, after] = [1, 3].map((n) =>
    eventsIn(
      `events: Ir I1mr ILmr D1mr DLmr D1mw DLmw\nsummary: ${Array(7)
        .fill(60 * n)
        .join(' ')}\n`,
    ),
  )
  assert.equal(costOf(before!, after!, 10), { instructions: 12, firstLevel: 36, lastLevel: 36 })
})

for (const framework of NAMES)
  test(`${framework}: each goal is computed from what was counted`, () => {
    const { contenders, units, goals } = instructionsOf(framework)
    const figures = (each: number) => Object.fromEntries(Object.keys(units).map((unit) => [unit, each]))
    const round = Object.fromEntries(contenders.map(({ name }, i) => [name, figures(i ** 2)]))
    for (const { label, value } of goals)
      assert.ok(Number.isFinite(value(round)) && value(round) !== 0, label)
  })

test.run()
