// run: full
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { HANDLERS, type HandlerName, KEY_HEADER } from '../../bench/http/handlers.js'
import { load } from '../../bench/http/load.js'
import { type StartedServer, startServer } from '../../bench/http/start-server.js'
import { LIMIT } from '../../bench/peers.js'

const HEADERS = ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset']

/** Starts a server and stops it, also if the test fails. */
async function withServer<T>(name: HandlerName, use: (server: StartedServer) => Promise<T>): Promise<T> {
  const server = await startServer(name)
  try {
    return await use(server)
  } finally {
    await server.stop()
  }
}

/** The RateLimit headers of two requests with one key and one with another. */
function headersOf(name: HandlerName): Promise<(string | null)[][]> {
  return withServer(name, async ({ port }) => {
    const headers = []
    for (const key of ['alice', 'alice', 'bob']) {
      const response = await fetch(`http://127.0.0.1:${port}`, { headers: { [KEY_HEADER]: key } })
      assert.is(response.status, 200)
      assert.is(await response.text(), 'hello\n')
      headers.push(HEADERS.map((header) => response.headers.get(header)))
    }
    return headers
  })
}

const remaining = (used: number) => String(LIMIT - used)

for (const name of ['limiter', 'pool limiter'] as const) {
  test(`the server '${name}' counts requests by their key`, async () => {
    const limited = await headersOf(name)
    assert.equal(
      limited.map(([limit, left]) => [limit, left]),
      [1, 2, 1].map((used) => [String(LIMIT), remaining(used)]),
    )
    assert.ok(limited.every(([, , resetSeconds]) => Number(resetSeconds) > 0))
  })
}

test('headers only sets constant headers, bare sets none', async () => {
  const constant = [String(LIMIT), remaining(1), '60']
  assert.equal(await headersOf('headers only'), [constant, constant, constant])
  const none = [null, null, null]
  assert.equal(await headersOf('bare'), [none, none, none])
})

test('every server responds under load and reports its processor time', async () => {
  for (const name of Object.keys(HANDLERS) as HandlerName[]) {
    await withServer(name, async (server) => {
      const before = await server.cpuUs()
      const { requests, requestsPerSecond, p50Ms, p99Ms } = await load(server.port, 100)
      assert.ok(requests > 0 && requestsPerSecond > 0 && p50Ms > 0 && p50Ms <= p99Ms)
      assert.ok((await server.cpuUs()) > before)
    })
  }
})

test('a failed connection fails the load', async () => {
  const port = await withServer('bare', async ({ port }) => port)
  const end = await load(port, 100).catch((error: unknown) => error)
  assert.match((end as Error).message, 'failed')
})

test.run()
