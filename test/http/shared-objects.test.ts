// run: full
// An application may hand one object to several clients: an error that it throws, or a response. Nothing of one
// client's response may reach another by it.
import { createServer } from 'node:http'
import { Controller, Get, HttpException } from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import express from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import Koa from 'koa'
import { rateLimit as forExpress } from 'millrace/express'
import { rateLimit as forFastify } from 'millrace/fastify'
import { rateLimit as forHono } from 'millrace/hono'
import { rateLimit as forKoa } from 'millrace/koa'
import { RateLimitGuard, RateLimitModule } from 'millrace/nest'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { decorate, PLATFORMS, start } from './nest-driver.js'
import { listen, shut } from './serve.js'

/** The first client is limited, the second is not. */
const OPTIONS = {
  limit: 3,
  window: '1m',
  key: () => 'all',
  exposeHeaders: true,
  routes: { '/free': false },
} as const
const HEADERS = ['ratelimit', 'ratelimit-policy', 'access-control-expose-headers']

interface App {
  get(path: string): Promise<Response>
  close?(): Promise<unknown>
}

/** Asks as the first client, then as the second. */
async function judge({ get, close }: App, status: number): Promise<void> {
  try {
    for (let i = 0; i < 2; i++) {
      const limited = await get('/limited')
      assert.is(limited.status, status)
      for (const name of HEADERS) assert.ok(limited.headers.has(name), `the limited client: ${name}`)
      const free = await get('/free')
      assert.is(free.status, status)
      for (const name of HEADERS) assert.is(free.headers.get(name), null, `the other client: ${name}`)
    }
  } finally {
    await close?.()
  }
}

async function served(listener: Parameters<typeof createServer>[1]): Promise<App> {
  const server = createServer(listener)
  const url = await listen(server)
  return { get: (path) => fetch(url + path), close: () => shut(server) }
}

const shared = () => Object.freeze(Object.assign(new Error('no'), { statusCode: 500 }))

test('Koa: an error', async () => {
  const error = new Error('no')
  const app = new Koa()
  app.silent = true
  app.use(forKoa(OPTIONS))
  app.use(() => {
    throw error
  })
  await judge(await served(app.callback()), 500)
  assert.is('headers' in error, false)
})

test('Express: an error', async () => {
  const error = shared()
  const app = express().set('env', 'test')
  app.use(forExpress(OPTIONS), () => {
    throw error
  })
  await judge(await served(app), 500)
})

test('Fastify: an error', async () => {
  const error = shared()
  const app = Fastify()
  app.register(forFastify, OPTIONS)
  for (const path of ['/limited', '/free']) {
    app.get(path, () => {
      throw error
    })
  }
  await judge({ get: async (path) => toResponse(await app.inject(path)), close: () => app.close() }, 500)
})

const toResponse = ({ statusCode, headers }: { statusCode: number; headers: object }): Response =>
  new Response(null, { status: statusCode, headers: headers as Record<string, string> })

for (const [what, handler] of Object.entries({
  'a response': (response: Response) => response,
  'the response of an error': (res: Response) => {
    throw new HTTPException(418, { res })
  },
})) {
  test(`Hono: ${what}`, async () => {
    const response = new Response(null, { status: 418 })
    const app = new Hono()
    app.use(forHono(OPTIONS))
    app.get('*', () => handler(response))
    await judge({ get: async (path) => app.request(path) }, 418)
    assert.equal([...response.headers], [])
  })
}

test('a function of requests: a response', async () => {
  const response = new Response(null, { status: 418 })
  const limited = forHono(OPTIONS, () => response)
  await judge({ get: (path) => limited(new Request(`http://localhost${path}`)) }, 418)
  assert.equal([...response.headers], [])
  await limited.close()
})

test('a function of requests: a Request object that is sent again', async () => {
  const limited = forHono({ limit: 3, window: '1m', key: () => 'all' }, () => new Response('hello'))
  const request = new Request('http://localhost/')
  for (const left of [2, 1, 0]) {
    assert.match(
      (await limited(request)).headers.get('ratelimit')!,
      new RegExp(`^"default";r=${left};t=\\d+$`),
    )
  }
  assert.is((await limited(request)).status, 429)
  await limited.close()
})

for (const platform of PLATFORMS) {
  test(`Nest on ${platform}: an exception`, async () => {
    const exception = new HttpException('no', 418)
    class Throwing {
      limited() {
        throw exception
      }

      free() {
        throw exception
      }
    }
    decorate(Throwing, 'limited', [Get('limited')])
    decorate(Throwing, 'free', [Get('free')])
    Controller()(Throwing)
    const app = await start(platform, {
      module: class App {},
      imports: [RateLimitModule.forRoot(OPTIONS)],
      controllers: [Throwing],
      providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }],
    })
    const url = await app.getUrl()
    await judge({ get: (path) => fetch(url + path), close: () => app.close() }, 418)
  })
}

test.run()
