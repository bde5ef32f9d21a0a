/**
 * One thread of the demo's server. `/limited` calls the limiter, `/open` does the same without it.
 * `servers.ts` starts it with a {@link ServerTask}; the thread replies to a {@link ServerRequest} with a
 * {@link ServerReply}.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { parentPort, workerData } from 'node:worker_threads'
import { decider } from './decider.js'
import { CLIENT_HEADER, type ServerReply, type ServerRequest, type ServerTask } from './messages.js'

const RESOLUTION_MS = 1

const { shared, engine, port } = workerData as ServerTask
const { limit, decide } = decider(engine, shared)
const pauses = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
let clients: number[] = []
let atMs: number[] = []

// Both paths set one header, so that its cost does not count as the limiter's.
const server = createServer((request, response) => {
  if (request.url !== '/limited') {
    response.writeHead(200, { 'RateLimit-Remaining': limit }).end('Hello\n')
    return
  }
  const client = String(request.headers[CLIENT_HEADER])
  decide(client, (decision, effectMs) => {
    if (decision === undefined) {
      response.writeHead(503).end('The limiter failed\n')
      return
    }
    if (!decision.allowed) {
      response.writeHead(429, { 'Retry-After': decision.retryAfterSeconds }).end('Wait!\n')
      return
    }
    clients.push(Number(client))
    atMs.push(effectMs)
    response.writeHead(200, { 'RateLimit-Remaining': decision.remaining }).end('Hello\n')
  })
})
server.on('error', (error: NodeJS.ErrnoException) => {
  reply({ type: 'failed', code: error.code, message: error.message })
})
server.listen(port, '127.0.0.1', () => {
  reply({ type: 'listening', port: (server.address() as AddressInfo).port })
})

parentPort!.on('message', (request: ServerRequest) => {
  if (request === 'start') {
    pauses.reset()
    pauses.enable()
    reply({ type: 'started' })
    return
  }
  pauses.disable()
  const longestPauseMs = Math.max(0, pauses.max / 1e6 - RESOLUTION_MS)
  reply({
    type: 'stopped',
    longestPauseMs,
    clients: Int32Array.from(clients),
    atMs: Float64Array.from(atMs),
  })
  clients = []
  atMs = []
})

function reply(message: ServerReply): void {
  parentPort!.postMessage(message)
}
