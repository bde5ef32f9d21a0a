// run: also-full
/** However a client spells a path: the limit of the route that the router finds holds. */
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { All, Controller, HttpCode, Post } from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import express, { type Express } from 'express'
import express4 from 'express4'
import fc from 'fast-check'
import Fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { rateLimit as limitExpress } from 'millrace/express'
import { rateLimit as limitFastify } from 'millrace/fastify'
import { rateLimit as limitHono } from 'millrace/hono'
import { rateLimit as limitNode, type NodeRequest } from 'millrace/http'
import { rateLimit as limitKoa } from 'millrace/koa'
import { rateLimit as limitNest, RateLimitGuard, RateLimitModule } from 'millrace/nest'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sized } from '../size.js'
import { decorate, type Platform, start } from './nest-driver.js'
import { sendRaw } from './raw.js'
import { listen, shut } from './serve.js'

const RUNS = sized({ quick: 60, full: 5_000 })

const many = { limit: 1e6, window: '1m' }
/** The rules of a route are named after its handler, and the other rules after none. */
const options = {
  ...many,
  name: 'other',
  routes: {
    'POST /api/login': { ...many, name: 'login' },
    'POST /users/:id/reset': { ...many, name: 'reset' },
    '/files/*': { ...many, name: 'files' },
    '/files/info': { ...many, name: 'info' },
    '/files/@me': { ...many, name: 'mine' },
    '/caf%C3%A9': { ...many, name: 'cafe' },
  },
}

interface Running {
  readonly url: string
  close(): Promise<unknown>
}

const onNode = async (listener: Parameters<typeof createServer>[1]): Promise<Running> => {
  const server = createServer(listener)
  return { url: await listen(server), close: () => shut(server) }
}

function serveExpress(app: Express, rest: string): Promise<Running> {
  app.set('env', 'test') // no log of requests that Express refuses
  app.use(limitExpress(options))
  const text = (name: string) => (_: unknown, response: express.Response) => void response.end(name)
  app.post('/api/login', text('login'))
  app.post('/users/:id/reset', text('reset'))
  app.all('/files/info', text('info'))
  app.all('/files/@me', text('mine'))
  app.all(`/files/${rest}`, text('files'))
  app.all('/caf%C3%A9', text('cafe'))
  app.use(text('other'))
  return onNode(app)
}

async function serveFastify(routerOptions: object): Promise<Running> {
  const app = Fastify({ routerOptions, forceCloseConnections: true })
  app.register(limitFastify, options)
  app.after(() => {
    app.post('/api/login', () => 'login')
    app.post('/users/:id/reset', () => 'reset')
    app.all('/files/*', () => 'files')
    app.all('/files/info', () => 'info')
    app.all('/files/@me', () => 'mine')
    app.all('/café', () => 'cafe')
    app.setNotFoundHandler((_, reply) => void reply.code(200).send('other'))
  })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  return { url, close: () => app.close() }
}

/** Finds a handler as `@koa/router` does by its defaults: without regard to case, and to a slash at the end. */
function handlerOf(method: string, path: string): string {
  if (method === 'POST' && /^\/api\/login\/?$/i.test(path)) return 'login'
  if (method === 'POST' && /^\/users\/[^/]+\/reset\/?$/i.test(path)) return 'reset'
  if (/^\/files\/info\/?$/i.test(path)) return 'info'
  if (/^\/files\/@me\/?$/i.test(path)) return 'mine'
  if (/^\/files\/.*$/i.test(path)) return 'files'
  return /^\/caf%C3%A9\/?$/i.test(path) ? 'cafe' : 'other'
}

function serveKoa(): Promise<Running> {
  const app = new Koa()
  app.use(limitKoa(options))
  app.use((context) => {
    context.status = 200
    context.body = handlerOf(context.method, context.path)
  })
  return onNode(app.callback())
}

function serveHono(strict: boolean): Promise<Running> {
  const app = new Hono({ strict })
  app.use(limitHono(options))
  app.post('/api/login', (context) => context.text('login'))
  app.post('/users/:id/reset', (context) => context.text('reset'))
  app.all('/files/info', (context) => context.text('info'))
  app.all('/files/@me', (context) => context.text('mine'))
  app.all('/files/*', (context) => context.text('files'))
  app.all('/café', (context) => context.text('cafe'))
  app.notFound((context) => context.text('other', 200))
  return onNode(getRequestListener(app.fetch))
}

function serveFunction(): Promise<Running> {
  const limited = limitHono({ ...options, key: () => 'all' }, (request) => {
    return new Response(handlerOf(request.method, new URL(request.url).pathname))
  })
  return onNode(getRequestListener((request) => limited(request)))
}

function serveNode(): Promise<Running> {
  const limited = limitNode(options)
  return onNode((request, response) => {
    limited(request, response, () => {
      response.end(handlerOf(request.method!, urlPath((request as NodeRequest).url!)))
    })
  })
}

const urlPath = (target: string): string =>
  URL.canParse(target, 'http://server') ? new URL(target, 'http://server').pathname : '/nowhere'

class Handlers {
  login() {
    return 'login'
  }

  reset() {
    return 'reset'
  }

  info() {
    return 'info'
  }

  mine() {
    return 'mine'
  }

  files() {
    return 'files'
  }

  cafe() {
    return 'cafe'
  }
}
Controller()(Handlers)
decorate(Handlers, 'login', [Post('api/login'), HttpCode(200)])
decorate(Handlers, 'reset', [Post('users/:id/reset'), HttpCode(200)])
decorate(Handlers, 'info', [All('files/info'), HttpCode(200)])
decorate(Handlers, 'mine', [All('files/@me'), HttpCode(200)])
decorate(Handlers, 'files', [All('files/*'), HttpCode(200)])
decorate(Handlers, 'cafe', [All('caf%C3%A9'), HttpCode(200)])

/** Nest, limited by its guard or by the middleware. */
async function serveNest(platform: Platform, isMiddleware: boolean): Promise<Running> {
  const imports = isMiddleware ? [] : [RateLimitModule.forRoot(options)]
  const providers = isMiddleware ? [] : [{ provide: APP_GUARD, useClass: RateLimitGuard }]
  const module = { module: class App {}, imports, providers, controllers: [Handlers] }
  const app = await start(platform, module, (nest) => {
    if (isMiddleware) nest.use(limitNest(options))
  })
  return { url: await app.getUrl(), close: () => app.close() }
}

const SERVERS: Readonly<Record<string, () => Promise<Running>>> = {
  'Express 5': () => serveExpress(express(), '*rest'),
  'Express 4': () => serveExpress(express4(), '*'),
  Fastify: () => serveFastify({}),
  'a lenient Fastify': () =>
    serveFastify({
      ignoreTrailingSlash: true,
      ignoreDuplicateSlashes: true,
      caseSensitive: false,
      useSemicolonDelimiter: true,
      maxParamLength: 10_000,
    }),
  Koa: serveKoa,
  Hono: () => serveHono(true),
  'a lenient Hono': () => serveHono(false),
  'a function of requests': serveFunction,
  'node:http': serveNode,
  'Nest on Express': () => serveNest('express', false),
  'Nest on Fastify': () => serveNest('fastify', false),
  'middleware of Nest on Express': () => serveNest('express', true),
  'middleware of Nest on Fastify': () => serveNest('fastify', true),
}

/** Spellings that went around a limit, or nearly. */
const KNOWN = [
  '/api/login',
  '/API/Login/',
  '/%61pi/%6Cogin',
  '//api//login',
  '/api\\login#',
  'http://a;/api/login',
  'http://a;b/%61pi/login;x',
  '/api/login\t',
  '/api/login\f',
  '/api/login\xa0',
  '/api/login;x=1',
  '/api/login#/files/x',
  '/x/../api/login',
  '/files/../api/login',
  '/files/%2e%2e/api/login',
  '/./api/login',
  '//host/api/login',
  '/\\host/api/login',
  'http://host/api/login',
  'HTTP://host/api/login',
  'http://host/api\\login',
  'http://host?/api/login',
  'http://host#/api/login',
  'http://host//api/login',
  '/users/a%2Fb/reset',
  '/users/%2f/reset',
  `/users/${'x'.repeat(3_000)}/%72eset`,
  `/%66iles/${'x'.repeat(3_000)}`,
  '/users/\xe9/reset',
  '/users/%ff/%72eset',
  '/users/%/%72eset',
  '/users/%25/%72eset',
  '/users/#/reset',
  '/caf%C3%A9',
  '/caf%c3%a9/',
  '/caf%25C3%25A9',
  '/caf%25%43%33%25A9',
  '/caf%2525C3%2525A9',
  '/files/',
  '/files',
  '/files//x',
]

const HANDLERS = /login|reset|files|cafe|info|mine|other/
/** One handler's path for some routers, and another's for others. */
const READ_IN_TWO_WAYS = [
  '/files/inf%6f',
  '/files/inf%256f',
  '/files/%40me',
  '/files/%2540me',
  '/%66iles/%40me',
  '/%66iles/info',
  '/%66iles/%256enfo',
  '/api/log%69n',
  '/api/log%2569n',
]

/** A path of the routes with some of its characters spelled otherwise, and something before or after it. */
const spelling = fc
  .tuple(
    fc.constantFrom('/api/login', '/users/7/reset', '/files/a/b', '/caf%C3%A9'),
    fc.array(fc.tuple(fc.nat(20), fc.constantFrom('upper', 'percent', 'double', 'backslash', 'dot', '%2F')), {
      maxLength: 3,
    }),
    fc.constantFrom(
      '',
      '',
      '',
      '/',
      '/x/..',
      '/.',
      '//host',
      '/%2e',
      '/files/..',
      'http://host',
      'HTTPS://h:1',
    ),
    fc.constantFrom(
      '',
      '',
      '',
      '/',
      '//',
      '?',
      '?x=/files/',
      '#',
      '#?',
      ';',
      ';x',
      '\t',
      '\xa0',
      '%20',
      '%00',
      '/.',
    ),
  )
  .map(([path, changes, before, after]) => {
    const parts = path.split('')
    for (const [at, change] of changes) {
      const i = at % path.length
      parts[i] = changed(path[i]!, change)
    }
    return before + parts.join('') + after
  })

/** Paths with some of their characters percent-encoded, once or twice: other routes for some routers. */
const encoded = fc
  .tuple(
    fc.constantFrom('/files/info', '/files/@me', '/files/a', '/api/login', '/caf%C3%A9'),
    fc.array(fc.tuple(fc.nat(20), fc.constantFrom('percent', 'twice')), { minLength: 1, maxLength: 3 }),
  )
  .map(([path, changes]) => {
    const parts = path.split('')
    for (const [at, change] of changes) {
      const i = 1 + (at % (path.length - 1))
      const once = changed(path[i]!, 'percent')
      parts[i] = change === 'twice' ? `%25${once.slice(1)}` : once
    }
    return parts.join('')
  })

function changed(character: string, how: string): string {
  if (how === 'upper') return character.toUpperCase()
  if (how === 'percent') return `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`
  if (character !== '/') return character
  return { double: '//', backslash: '\\', dot: '/./', '%2F': '%2F' }[how]!
}

for (const [name, serve] of Object.entries(SERVERS)) {
  test(`${name} serves no spelling of a limited route under another limit`, async () => {
    const { url, close } = await serve()
    let served = 0
    const holds = async (target: string, handlers = /login|reset|files|cafe/) => {
      const { status, body, header } = await sendRaw(url, [
        `POST ${target} HTTP/1.1`,
        'Host: host',
        'Content-Length: 0',
      ])
      // What the server or the framework refuses by itself has no handler.
      if (status !== 200) return
      const handler = handlers.exec(body)?.[0]
      if (handler === undefined) return
      served++
      const rules = [...(header('ratelimit-policy') ?? '').matchAll(/"(\w+)"/g)].map(([, rule]) => rule)
      assert.ok(rules.includes(handler), `${handler}: ${rules}: ${JSON.stringify(target)}`)
    }
    try {
      for (const target of KNOWN) await holds(target)
      for (const target of READ_IN_TWO_WAYS) await holds(target, HANDLERS)
      await fc.assert(
        fc.asyncProperty(spelling, (target) => holds(target)),
        { numRuns: RUNS },
      )
      await fc.assert(
        fc.asyncProperty(encoded, (target) => holds(target, HANDLERS)),
        { numRuns: RUNS / 2 },
      )
      assert.ok(served > 3, `${served} requests reached a handler of the routes`)
    } finally {
      await close()
    }
  })
}

test.run()
