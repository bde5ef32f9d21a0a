// run: full
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Load, load } from '../../bench/http/load.js'

/** The server's response time: longer than the load and autocannon's sampling interval. */
const LATE_MS = 120

async function loadOf(listener: RequestListener): Promise<Load> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    return await load((server.address() as AddressInfo).port, 1)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

test('the duration of a load starts at the first response, even a late one', async () => {
  const { requests, requestsPerSecond, p50Ms } = await loadOf((_, response) => {
    setTimeout(() => response.end(), LATE_MS)
  })
  assert.ok(requests > 0 && requestsPerSecond > 0)
  assert.ok(p50Ms >= LATE_MS - 1)
})

test('an error response fails the load', async () => {
  const error = await loadOf((_, response) => void response.writeHead(500).end()).catch(
    (error: unknown) => error,
  )
  assert.match((error as Error).message, /^0 requests succeeded, [1-9]\d* had another status, 0 failed$/)
})

test.run()
