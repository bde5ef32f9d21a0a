// run: typescript, full
import http from 'node:http'
import http2 from 'node:http2'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import express, { type Request } from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { ipKey } from 'millrace/express'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const express4: typeof express = createRequire(import.meta.url)('express4')

const bySocket = ipKey({ trustProxy: 0 })
const byHeader = ipKey({ trustProxy: 1 })

/** Resolves with what a server answers to a request with X-Forwarded-For, and closes it. */
async function answerOf(server: http.Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const headers = { 'x-forwarded-for': '192.0.2.9, 192.0.2.1', connection: 'close' }
  const response = await fetch(`http://127.0.0.1:${port}/`, { headers })
  const text = await response.text()
  await new Promise((resolve) => server.close(resolve))
  return text
}

const EXPECTED = '127.0.0.1 192.0.2.1'

test('node:http', async () => {
  const server = http.createServer((request, response) => {
    response.end(`${bySocket(request)} ${byHeader(request)}`)
  })
  assert.is(await answerOf(server), EXPECTED)
})

for (const [name, make] of Object.entries({ express, express4 })) {
  test(`${name}, whose setting trust proxy is not read`, async () => {
    const app = make()
    app.set('trust proxy', 2)
    app.get('/', (request: Request, response) => {
      response.send(`${bySocket(request)} ${byHeader(request)}`)
    })
    assert.is(await answerOf(http.createServer(app)), EXPECTED)
  })
}

test('fastify', async () => {
  const app = fastify()
  app.get('/', async (request) => `${bySocket(request)} ${byHeader(request)}`)
  await app.ready()
  const injected = await app.inject({ url: '/', remoteAddress: '192.0.2.5' })
  assert.is(injected.body, '192.0.2.5 192.0.2.5')
  assert.is(await answerOf(app.server), EXPECTED)
})

test('koa', async () => {
  const app = new Koa()
  app.use((context) => {
    context.body = `${bySocket(context)} ${byHeader(context)}`
  })
  assert.is(await answerOf(http.createServer(app.callback())), EXPECTED)
})

test('hono on node.js', async () => {
  const app = new Hono()
  app.get('/', (context) => context.text(`${bySocket(context)} ${byHeader(context)}`))
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const headers = { 'x-forwarded-for': '192.0.2.9, 192.0.2.1', connection: 'close' }
  const response = await fetch(`http://127.0.0.1:${port}/`, { headers })
  const text = await response.text()
  await new Promise((resolve) => server.close(resolve))
  assert.is(text, EXPECTED)
})

test('node:http2, with the address read once a session and not once a request', async () => {
  const keys: string[] = []
  let reads = 0
  const [bySession, byForwarded] = [ipKey({ trustProxy: 0 }), ipKey({ trustProxy: 1 })]
  const server = http2.createServer((request, response) => {
    keys.push(`${bySession(request)} ${byForwarded(request)}`)
    response.end()
  })
  server.on('connection', (socket) => {
    Object.defineProperty(socket, 'remoteAddress', {
      get() {
        reads++
        return '127.0.0.1'
      },
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const client = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  for (let i = 0; i < 3; i++) {
    const stream = client.request({ ':path': '/', 'x-forwarded-for': '192.0.2.9, 192.0.2.1' })
    stream.resume()
    await new Promise((resolve) => stream.once('close', resolve))
  }
  client.close()
  await new Promise((resolve) => server.close(resolve))
  assert.equal(keys, [EXPECTED, EXPECTED, EXPECTED])
  assert.is(reads, 2)
})

test('a request of node:http2 whose session has ended has no address, and says so', async () => {
  let error: unknown
  const server = http2.createServer((request) => {
    request.stream.on('error', () => {})
    request.stream.session!.destroy()
    try {
      ipKey({ trustProxy: 0 })(request)
    } catch (thrown) {
      error = thrown
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const client = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  client.on('error', () => {})
  const stream = client.request({ ':path': '/' })
  stream.on('error', () => {})
  await new Promise((resolve) => client.once('close', resolve))
  await new Promise((resolve) => server.close(resolve))
  assert.is((error as { code?: string }).code, 'ERR_MILLRACE_NO_ADDRESS', String(error))
})

test.run()
