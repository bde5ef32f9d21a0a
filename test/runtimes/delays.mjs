// Requests that wait: too many are refused, and those of a client that hangs up are dropped.
import * as assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { rateLimit } from 'millrace/http'
import { rateLimit as limitFetch } from 'millrace/web'

const MOST = 3
/** Longer than it takes to send a few requests to this process, and to hang up. */
const DELAY_MS = 1_500

/** Starts a server whose requests all wait. */
async function listen(app) {
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: server.address().port, stop: () => server.close() }
}

/** The servers of this runtime, by a function that starts one with options for its limiter. */
export const servers = {
  'node:http': (options, handle) => {
    const limited = rateLimit(options)
    return listen((request, response) => limited(request, response, () => response.end(handle())))
  },
  ...(globalThis.Bun && {
    'Bun.serve': async (options, handle) => {
      const fetch = limitFetch(options, () => new Response(handle()))
      const server = Bun.serve({ port: 0, fetch: (request) => fetch(request) })
      return { port: server.port, stop: () => server.stop(true) }
    },
  }),
  ...(globalThis.Deno && {
    'Deno.serve': async (options, handle) => {
      const fetch = limitFetch(options, () => new Response(handle()))
      const server = Deno.serve({ port: 0, hostname: '127.0.0.1', onListen() {} }, (request) =>
        fetch(request),
      )
      return { port: server.addr.port, stop: () => server.shutdown() }
    },
  }),
}

export async function delaysAreBounded(start) {
  let handled = 0
  let asked = 0
  let allAsked
  const all = new Promise((resolve) => {
    allAsked = resolve
  })
  const key = () => {
    if (++asked === MOST) allAsked()
    return 'key'
  }
  const delay = { after: 0, ms: DELAY_MS, max: DELAY_MS, maxDelayed: MOST }
  const server = await start({ limit: 1, window: '1m', key, delay }, () => `handled ${++handled}`)
  const statusOf = async (signal) =>
    (await fetch(`http://127.0.0.1:${server.port}/`, signal && { signal })).status
  const client = new AbortController()
  const waiting = Array.from({ length: MOST }, () => statusOf(client.signal))
  await all
  assert.equal(await statusOf(), 429)
  client.abort()
  for (const each of waiting) await assert.rejects(each, { name: 'AbortError' })
  let status
  do status = await statusOf()
  while (status === 429)
  // What hung up would have been handled before: it began to wait earlier.
  assert.deepEqual([status, handled], [200, 1])
  server.stop()
}
