// A middleware that is handed on without a call, `app.use(rateLimit)`, is given requests: the error says what is missing.
import { createServer } from 'node:http'
import express from 'express'
import { Hono } from 'hono'
import Koa from 'koa'
import * as ofExpress from 'millrace/express'
import * as ofHono from 'millrace/hono'
import * as ofNode from 'millrace/http'
import * as ofKoa from 'millrace/koa'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { listen, shut } from './serve.js'

// biome-ignore lint/suspicious/noExplicitAny: calls that the types refuse
type Wrong = any

/** What a server says of its first request, by each framework. */
const SERVERS: Record<string, (limit: Wrong, onError: (error: unknown) => void) => Wrong> = {
  express(limit, onError) {
    const app = express()
    app.use(limit)
    app.use(((error, _request, response, _next) => {
      onError(error)
      response.sendStatus(500)
    }) satisfies express.ErrorRequestHandler)
    return app
  },
  koa(limit, onError) {
    const app = new Koa()
    app.use(limit)
    app.on('error', onError)
    return app.callback()
  },
  node: (limit, onError) => (request: Wrong, response: Wrong) => {
    try {
      limit(request, response, () => {})
    } catch (error) {
      onError(error)
    }
    response.end()
  },
}
const MODULES: Record<string, Record<string, unknown>> = { express: ofExpress, koa: ofKoa, node: ofNode }

const assertTold = (error: unknown) => {
  const { code, message } = error as { code: string; message: string }
  assert.is(code, 'ERR_MILLRACE_INVALID_OPTION')
  assert.match(message, /^options: expected an object .* as in app\.use\(rateLimit\(\{ .*got "a request"$/)
}

for (const [framework, serve] of Object.entries(SERVERS)) {
  for (const name of ['rateLimit', 'groupLimit']) {
    test(`${framework}: ${name} without a call`, async () => {
      const errors: unknown[] = []
      const server = createServer(serve(MODULES[framework]![name], (error) => errors.push(error)))
      await fetch(await listen(server))
      await shut(server)
      assert.is(errors.length, 1)
      assertTold(errors[0])
    })
  }
}

test('hono: rateLimit without a call', async () => {
  const app = new Hono()
  const errors: unknown[] = []
  app.use(ofHono.rateLimit as Wrong)
  app.onError((error, context) => {
    errors.push(error)
    return context.text('', 500)
  })
  await app.request('/')
  assert.is(errors.length, 1)
  assertTold(errors[0])
})

test.run()
