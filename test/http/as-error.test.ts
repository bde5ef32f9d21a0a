// run: full
// The option `asError`: refusals and failures go to the framework's own error handling, with the headers.

import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { Controller, Get } from '@nestjs/common'
import express, { type Response as ExpressResponse, type NextFunction, type Request } from 'express'
import express4 from 'express4'
import Fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import * as byExpress from 'millrace/express'
import * as byFastify from 'millrace/fastify'
import * as byHono from 'millrace/hono'
import { rateLimit } from 'millrace/http'
import * as byKoa from 'millrace/koa'
import * as byNest from 'millrace/nest'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises } from '../limiter/support.js'
import { decorate, start } from './nest-driver.js'
import { listen, shut } from './serve.js'

const OPTIONS = { limit: 1, window: '1h', asError: true, key: () => 'all' } as const
const failing = () => {
  throw new Error('no key')
}
type Options = Omit<typeof OPTIONS, 'key'> & { key: () => string }
/** Serves by a framework, whose own handler answers errors by their status and name, if it has one. */
type Serve = (
  options: Options,
  hasHandler: boolean,
) => Promise<readonly [url: string, close: () => Promise<unknown>]>

async function served(listener: Parameters<typeof createServer>[1]) {
  const server = createServer(listener)
  return [await listen(server), () => shut(server)] as const
}

const onExpress =
  (create: typeof express): Serve =>
  (options, hasHandler) => {
    const app = create()
    app.set('env', 'test')
    app.use(byExpress.rateLimit(options))
    app.get('/', (_, response) => void response.send('hello'))
    if (hasHandler) {
      app.use((error: byExpress.RateLimitError, _: Request, response: ExpressResponse, __: NextFunction) => {
        response.status(error.status).send(`own ${error.name}`)
      })
    }
    return served(app)
  }

const FRAMEWORKS: Readonly<Record<string, Serve>> = {
  'Express 5': onExpress(express),
  'Express 4': onExpress(express4),
  async Fastify(options, hasHandler) {
    const app = Fastify()
    app.register(byFastify.rateLimit, options)
    if (hasHandler) {
      app.setErrorHandler((error: byFastify.RateLimitError, _, reply) => {
        reply.code(error.statusCode).send(`own ${error.name}`)
      })
    }
    app.get('/', () => 'hello')
    return [await app.listen({ port: 0, host: '127.0.0.1' }), () => app.close()]
  },
  Koa(options, hasHandler) {
    const app = new Koa()
    app.silent = true
    if (hasHandler) {
      app.use(async (context, next) => {
        try {
          await next()
        } catch (error) {
          const { status, name } = error as byKoa.RateLimitError
          context.status = status
          context.body = `own ${name}`
        }
      })
    }
    app.use(byKoa.rateLimit(options))
    app.use((context) => {
      context.body = 'hello'
    })
    return served(app.callback())
  },
  Hono(options, hasHandler) {
    const app = new Hono()
    app.use(byHono.rateLimit(options))
    app.get('/', (context) => context.text('hello'))
    if (hasHandler) {
      app.onError((error, context) => {
        const { status, name } = error as byHono.RateLimitError
        return context.text(`own ${name}`, status as 429)
      })
    }
    return served(getRequestListener(app.fetch))
  },
}

for (const [name, serve] of Object.entries(FRAMEWORKS)) {
  for (const hasHandler of [true, false]) {
    test(`${name}: a refusal is the error of the app's own handling${hasHandler ? '' : ', or of the framework'}`, async () => {
      const [url, close] = await serve(OPTIONS, hasHandler)
      assert.is((await fetch(url)).status, 200)
      const refused = await fetch(url)
      assert.is(refused.status, 429)
      assert.match(refused.headers.get('ratelimit')!, /^"default";r=0;t=3\d\d\d$/)
      assert.match(refused.headers.get('retry-after')!, /^3\d\d\d$/)
      if (hasHandler) assert.is(await refused.text(), 'own RateLimitError')
      await close()
    })
  }

  test(`${name}: so is a request about which no decision could be made`, async () => {
    const [url, close] = await serve({ ...OPTIONS, key: failing }, true)
    const response = await fetch(url)
    assert.equal([response.status, await response.text()], [503, 'own RateLimitError'])
    await close()
  })
}

class Routes {
  hello() {
    return 'hello'
  }
}
Controller()(Routes)
decorate(Routes, 'hello', [Get()])

test('Nest: middleware hands a RateLimitException to the filters of the app', async () => {
  const limited = byNest.rateLimit(OPTIONS)
  const app = await start('express', { module: class App {}, controllers: [Routes] }, (each) =>
    each.use(limited),
  )
  const url = await app.getUrl()
  assert.is((await fetch(url)).status, 200)
  const refused = await fetch(url)
  assert.is(refused.status, 429)
  assert.match(refused.headers.get('retry-after')!, /^3\d\d\d$/)
  await app.close()
  await limited.close()
})

test('node:http has no error handling of its own, so no such option', () => {
  assertRaises(() => rateLimit({ ...OPTIONS } as never), 'ERR_MILLRACE_INVALID_OPTION', 'options')
  assertRaises(
    () => byExpress.rateLimit({ ...OPTIONS, asError: 1 } as never),
    'ERR_MILLRACE_INVALID_OPTION',
    'asError',
  )
})

test.run()
