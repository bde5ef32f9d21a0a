// Middleware may hand a limiter an object in place of a request or its response: one that has it as its prototype, or a
// proxy. It is the same request: one charge and one item of each limiter, and the handler finds the decision.
import type { IncomingMessage, ServerResponse } from 'node:http'
import express from 'express'
import express4 from 'express4'
import Koa from 'koa'
import { rateLimit as forExpress } from 'millrace/express'
import { rateLimit as forNode } from 'millrace/http'
import { rateLimit as forKoa } from 'millrace/koa'
import { rateLimit as forNest } from 'millrace/nest'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { http1Client } from './driver.js'
import { http2Client } from './http2-client.js'
import { createHttp1, createHttp2, listen, shut } from './serve.js'

// biome-ignore lint/suspicious/noExplicitAny: the parts of several frameworks
type Part = any
type Limiter = (request: Part, response: Part, next: () => unknown) => unknown

/** A proxy that calls methods on what it stands for, and keeps what is set on it. */
function keepingProxy(of: object): object {
  const own: Record<string | symbol, unknown> = {}
  return new Proxy(of, {
    get(target: Part, name) {
      if (name in own) return own[name]
      const value = target[name]
      return typeof value === 'function' ? value.bind(target) : value
    },
    set(_, name, value) {
      own[name] = value
      return true
    },
  })
}

const wrappers = { 'Object.create': (of: object): object => Object.create(of), 'a proxy': keepingProxy }
const options = { limit: 10, window: '1m', key: () => 'all' } as const
const shown = (request: { rateLimit?: { remaining: number } }): string =>
  `remaining ${request.rateLimit?.remaining}`

/** Middleware, then a handler, of an app of Express. */
const onExpress = (create: typeof express) => (steps: readonly Limiter[]) => {
  const app = create()
  for (const step of steps) app.use(step)
  app.use((request, response) => void response.end(shown(request as Part)))
  return createHttp1(app)
}

const onNode = (create: typeof createHttp1) => (steps: readonly Limiter[]) =>
  create((request, response) => {
    const next = (i: number): unknown =>
      i < steps.length
        ? steps[i]!(request, response, () => next(i + 1))
        : response.end(shown(request as Part))
    next(0)
  })

const places = {
  'Express 5': [onExpress(express), forExpress],
  'Express 4': [onExpress(express4), forExpress],
  'node:http': [onNode(createHttp1), forNode],
  'node:http2': [onNode(createHttp2), forNode],
  "Nest's middleware on Express": [onExpress(express), forNest],
  "Nest's middleware on Fastify, which hands on what node has": [onNode(createHttp1), forNest],
} as const

for (const [name, [serve, rateLimit]] of Object.entries(places)) {
  const client = serve === places['node:http2'][0] ? http2Client : http1Client
  for (const [how, wrap] of Object.entries(wrappers)) {
    for (const what of ['request', 'response', 'both']) {
      test(`${name}: ${what} by ${how}`, async () => {
        const [one, other] = [rateLimit(options), rateLimit({ ...options, name: 'other' })] as Limiter[]
        const wrapped: Limiter = (request, response, next) =>
          one!(
            what === 'response' ? request : wrap(request),
            what === 'request' ? response : wrap(response),
            next,
          )
        const server = serve([wrapped, one!, wrapped, other!])
        try {
          const response = await client.fetch(await listen(server), { method: 'GET', headers: {} })
          assert.is(await response.text(), 'remaining 9')
          // What is set on an object made of a response may stay there.
          if (what !== 'request') return
          assert.is(response.headers.get('ratelimit'), '"default";r=9;t=61, "other";r=9;t=61')
        } finally {
          await shut(server)
        }
      })
    }
  }
}

for (const [how, wrap] of Object.entries(wrappers)) {
  test(`Koa: a context by ${how}`, async () => {
    const limiter = forKoa(options)
    const app = new Koa()
    app.use((context, next) => limiter(wrap(context) as typeof context, next))
    app.use(limiter)
    app.use((context) => {
      context.body = shown(context.state as Part)
    })
    const server = createHttp1(app.callback())
    try {
      const response = await fetch(await listen(server))
      assert.is(await response.text(), 'remaining 9')
      assert.is(response.headers.get('ratelimit'), '"default";r=9;t=61')
    } finally {
      await shut(server)
    }
  })
}

test('the parts of a batch, each with a response of its own, are charged each', async () => {
  const limiter = forNode(options)
  const server = createHttp1((request, response) => {
    const part = (i: number): unknown => {
      const own = Object.create(request) as IncomingMessage
      const answer = Object.create(response) as ServerResponse
      Object.defineProperty(answer, 'req', { value: own })
      return i < 3
        ? limiter(own, answer, () => part(i + 1))
        : limiter(own, answer, () => response.end(shown(own as Part)))
    }
    part(0)
  })
  try {
    assert.is(await (await fetch(await listen(server))).text(), 'remaining 6')
  } finally {
    await shut(server)
  }
})

test.run()
