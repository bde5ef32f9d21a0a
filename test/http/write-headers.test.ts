// run: also-full
// `writeHeaders` writes the same into the response of each framework as `rateLimit` does.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import express from 'express'
import Fastify from 'fastify'
import { createLimiter, type Decision, group, manualClock } from 'millrace'
import { type HeaderPlace, rateLimit, type WriteHeadersOptions, writeHeaders } from 'millrace/http'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises } from '../limiter/support.js'
import { sized } from '../size.js'
import { http1Client } from './driver.js'
import { http2Client } from './http2-client.js'
import { createHttp2, listen, shut } from './serve.js'

type Write = (place: HeaderPlace) => void
/** Answers a request by a framework, with what is written into its response. */
type Place = (write: Write) => Promise<Headers>

async function over(
  listener: (request: IncomingMessage, response: ServerResponse) => unknown,
  create = (each: typeof listener) => createServer(each),
  client = http1Client,
): Promise<Headers> {
  const server = create(listener)
  const url = await listen(server)
  try {
    const response = await client.fetch(`${url}/`, { method: 'GET', headers: {} })
    assert.is(response.status, 200)
    return response.headers
  } finally {
    await shut(server)
  }
}

const node: Place = (write) =>
  over((_, response) => {
    write(response)
    response.end()
  })
const http2: Place = (write) =>
  over(
    (_, response) => {
      write(response)
      response.end()
    },
    createHttp2 as never,
    http2Client,
  )
const fastify: Place = async (write) => {
  const app = Fastify()
  app.get('/', async (_, reply) => {
    write(reply)
    return 'hello'
  })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const { headers } = await fetch(url)
  await app.close()
  return headers
}
const web: Place = async (write) => {
  const response = new Response('hello')
  write(response)
  return response.headers
}
const plain: Place = async (write) => {
  const headers = new Headers()
  write(headers)
  return headers
}
const places: Readonly<Record<string, Place>> = await sized({
  quick: async () => ({ node, http2, fastify, web, plain }),
  async full() {
    const { default: express4 } = await import('express4')
    const { default: Koa } = await import('koa')
    const { Hono } = await import('hono')
    const { getRequestListener } = await import('@hono/node-server')
    const byExpress =
      (create: typeof express): Place =>
      (write) => {
        const app = create()
        app.get('/', (_, response) => {
          write(response)
          response.send('hello')
        })
        return over(app)
      }
    const koa: Place = (write) => {
      const app = new Koa()
      app.use((context) => {
        write(context)
        context.body = 'hello'
      })
      return over(app.callback())
    }
    const hono: Place = (write) => {
      const app = new Hono()
      app.get('/', (context) => {
        write(context)
        return context.text('hello')
      })
      return over(getRequestListener(app.fetch))
    }
    return {
      node,
      http2,
      fastify,
      web,
      plain,
      koa,
      hono,
      express4: byExpress(express4),
      express5: byExpress(express),
    }
  },
})()

const NAMES = /ratelimit|retry-after|expose/
const shown = (headers: Headers): Record<string, string> =>
  Object.fromEntries([...headers].filter(([name]) => NAMES.test(name)))

const KEY = () => 'all'
const FORMS = ['draft-11', 'draft-7', 'draft-6', 'x-ratelimit', false] as const
const limiterOf = () => createLimiter({ limit: 1, window: '1m', clock: manualClock(1e9) })

for (const [name, place] of Object.entries(places)) {
  test(`${name}: the headers are those of rateLimit, in each form, of admissions and refusals`, async () => {
    for (const standard of FORMS) {
      const [limiter, middleware] = [limiterOf(), limiterOf()]
      const options: WriteHeadersOptions = { standard, exposeHeaders: true, limiter }
      const limited = rateLimit({ limiter: middleware, key: KEY, standard, exposeHeaders: true, message: '' })
      for (let i = 0; i < 2; i++) {
        const found = await place((response) => writeHeaders(response, limiter.check('all'), options))
        const server = createServer((request, response) => limited(request, response, () => response.end()))
        const { headers } = await fetch(await listen(server))
        await shut(server)
        assert.equal(
          { ...shown(found), 'x-ratelimit-reset': '' },
          { ...shown(headers), 'x-ratelimit-reset': '' },
        )
      }
      for (const each of [limiter, middleware]) each.close()
    }
  })

  test(`${name}: without the limiter the policy has no window; a second decision is appended`, async () => {
    const limiter = limiterOf()
    const decision = limiter.check('all')
    const found = await place((response) => {
      writeHeaders(response, decision)
      writeHeaders(response, limiter.check('all'))
    })
    assert.equal(shown(found), {
      ratelimit: '"default";r=0;t=61, "default";r=0;t=61',
      'ratelimit-policy': '"default";q=1, "default";q=1',
      'retry-after': '61',
    })
    limiter.close()
  })
}

test('the headers of a group have the names of its members, and of a refusal those that refused', () => {
  const rules = [
    { name: 'burst', limit: 1, window: '1s' },
    { name: 'hôurly', limit: 9, window: '1h' },
  ] as const
  const clock = manualClock(1e9)
  const members = {
    account: createLimiter({ rules, clock }),
    address: createLimiter({ limit: 3, window: '1m', clock }),
  }
  const logins = group(members)
  const written = (decision: Decision) => {
    const headers = new Headers()
    writeHeaders(headers, decision)
    return shown(headers)
  }
  const keys = { account: 'alice', address: '192.0.2.1' }
  assert.equal(written(logins.check(keys)), {
    ratelimit: '"account.burst";r=0;t=2, "account.h?urly";r=8;t=3620, "address";r=2;t=61',
    'ratelimit-policy': '"account.burst";q=1, "account.h?urly";q=9, "address";q=3',
  })
  assert.equal(written(logins.check(keys)), {
    ratelimit: '"account.burst";r=0;t=2',
    'ratelimit-policy': '"account.burst";q=1',
    'retry-after': '2',
  })
  for (const each of Object.values(members)) each.close()
})

test('what has no headers, and wrong options, are refused by name', () => {
  const limiter = limiterOf()
  const decision = limiter.check('all')
  for (const wrong of [undefined, null, 'response', {}, { res: {} }, { headers: {} }])
    assertRaises(() => writeHeaders(wrong as never, decision), 'ERR_MILLRACE_INVALID_OPTION', 'response')
  const write = (options: object) => writeHeaders(new Headers(), decision, options)
  assertRaises(() => write({ form: 'draft-7' }), 'ERR_MILLRACE_INVALID_OPTION', 'options')
  assertRaises(() => write({ standard: 'draft-9' }), 'ERR_MILLRACE_INVALID_OPTION', 'standard')
  limiter.close()
})

test.run()
