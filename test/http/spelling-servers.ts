/**
 * Servers with the same routes in all frameworks and their options, in the oldest and the newest version of each range
 * of `peerDependencies`.
 */
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import express, { type Express, type Router } from 'express'
import express4 from 'express4'
import Fastify, { type FastifyInstance } from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { rateLimit as limitExpress } from 'millrace/express'
import { rateLimit as limitFastify } from 'millrace/fastify'
import { rateLimit as limitHono } from 'millrace/hono'
import { rateLimit as limitNode, type NodeRequest } from 'millrace/http'
import { rateLimit as limitKoa } from 'millrace/koa'
import { decorate, type Platform, startNest } from './nest-driver.js'
import { listen, shut } from './serve.js'
import { type Nest, newestNest, newestNest11, oldest, oldestNest } from './versions.js'

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
    '/': false as const,
  },
}

export interface Running {
  readonly url: string
  close(): Promise<unknown>
}

const onNode = async (listener: Parameters<typeof createServer>[1]): Promise<Running> => {
  const server = createServer(listener)
  return { url: await listen(server), close: () => shut(server) }
}

/** What the routes are mounted at in the servers of {@link MOUNTED}. */
export const MOUNT = '/m'

/** @param inner has the limiter and the routes: the app, or a router that is mounted */
function serveExpress(app: Express, rest: string, isStrict = false, inner: Router = app): Promise<Running> {
  app.set('env', 'test') // no log of requests that Express refuses
  if (isStrict) app.enable('case sensitive routing').enable('strict routing')
  inner.use(limitExpress(options))
  const text = (name: string) => (_: unknown, response: express.Response) => void response.end(name)
  inner.all('/', text('home'))
  inner.post('/api/login', text('login'))
  inner.post('/users/:id/reset', text('reset'))
  inner.all('/files/info', text('info'))
  inner.all('/files/@me', text('mine'))
  inner.all(`/files/${rest}`, text('files'))
  inner.all('/caf%C3%A9', text('cafe'))
  inner.use(text('other'))
  if (inner !== app) app.use(MOUNT, inner)
  return onNode(app)
}

async function serveFastify(create: typeof Fastify, settings: object, prefix = ''): Promise<Running> {
  const root = create({ ...settings, forceCloseConnections: true })
  const install = async (app: FastifyInstance) => {
    await app.register(limitFastify, options)
    app.all('/', () => 'home')
    app.post('/api/login', () => 'login')
    app.post('/users/:id/reset', () => 'reset')
    app.all('/files/*', () => 'files')
    app.all('/files/info', () => 'info')
    app.all('/files/@me', () => 'mine')
    app.all('/café', () => 'cafe')
    app.setNotFoundHandler((_, reply) => void reply.code(200).send('other'))
  }
  if (prefix === '') await install(root)
  else root.register(install, { prefix })
  const url = await root.listen({ port: 0, host: '127.0.0.1' })
  return { url, close: () => root.close() }
}

/** Finds a handler as `@koa/router` does by its defaults: without regard to case, and to a slash at the end. */
function handlerOf(method: string, path: string): string {
  if (path === '/') return 'home'
  if (method === 'POST' && /^\/api\/login\/?$/i.test(path)) return 'login'
  if (method === 'POST' && /^\/users\/[^/]+\/reset\/?$/i.test(path)) return 'reset'
  if (/^\/files\/info\/?$/i.test(path)) return 'info'
  if (/^\/files\/@me\/?$/i.test(path)) return 'mine'
  if (/^\/files\/.*$/i.test(path)) return 'files'
  return /^\/caf%C3%A9\/?$/i.test(path) ? 'cafe' : 'other'
}

function serveKoa(app: Koa, outer = app): Promise<Running> {
  app.use(limitKoa(options))
  app.use((context) => {
    context.status = 200
    context.body = handlerOf(context.method, context.path)
  })
  if (outer !== app) outer.use(oldest('koa-mount')(MOUNT, app))
  return onNode(outer.callback())
}

function serveHono(app: Hono, outer = app): Promise<Running> {
  app.use(limitHono(options))
  app.all('/', (context) => context.text('home'))
  app.post('/api/login', (context) => context.text('login'))
  app.post('/users/:id/reset', (context) => context.text('reset'))
  app.all('/files/info', (context) => context.text('info'))
  app.all('/files/@me', (context) => context.text('mine'))
  app.all('/files/*', (context) => context.text('files'))
  app.all('/café', (context) => context.text('cafe'))
  if (outer === app) app.notFound((context) => context.text('other', 200))
  if (outer !== app) outer.route(MOUNT, app)
  return onNode(getRequestListener(outer.fetch))
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

/** A controller that is decorated by one version of Nest. */
function handlersOf({ common: { All, Controller, HttpCode, Post } }: Nest) {
  class Handlers {}
  Controller()(Handlers)
  const add = (name: string, decorators: readonly MethodDecorator[]) => {
    Object.defineProperty(Handlers.prototype, name, { value: () => name, configurable: true, writable: true })
    decorate(Handlers, name, decorators)
  }
  add('home', [All()])
  add('login', [Post('api/login'), HttpCode(200)])
  add('reset', [Post('users/:id/reset'), HttpCode(200)])
  add('info', [All('files/info'), HttpCode(200)])
  add('mine', [All('files/@me'), HttpCode(200)])
  add('files', [All('files/*'), HttpCode(200)])
  add('cafe', [All('caf%C3%A9'), HttpCode(200)])
  return Handlers
}

/** Nest, limited by its guard or by the middleware. */
async function serveNest(
  nest: Nest,
  platform: Platform,
  isMiddleware: boolean,
  prefix = '',
): Promise<Running> {
  const { RateLimitModule, RateLimitGuard, rateLimit } = nest.millrace
  const imports = isMiddleware ? [] : [RateLimitModule.forRoot(options)]
  const providers = isMiddleware ? [] : [{ provide: nest.core.APP_GUARD, useClass: RateLimitGuard }]
  const module = { module: class App {}, imports, providers, controllers: [handlersOf(nest)] }
  const app = await startNest(nest, platform, module, (made) => {
    if (isMiddleware) made.use(rateLimit(options))
    if (prefix !== '') made.setGlobalPrefix(prefix)
  })
  return { url: await app.getUrl(), close: () => app.close() }
}

const LENIENT = {
  ignoreTrailingSlash: true,
  ignoreDuplicateSlashes: true,
  caseSensitive: false,
  useSemicolonDelimiter: true,
  maxParamLength: 10_000,
}

type Servers = Readonly<Record<string, () => Promise<Running>>>

const serversOfNest = (version: string, nest: () => Nest | Promise<Nest>): Servers => ({
  [`Nest ${version} on Express`]: async () => serveNest(await nest(), 'express', false),
  [`Nest ${version} on Fastify`]: async () => serveNest(await nest(), 'fastify', false),
  [`middleware of Nest ${version} on Express`]: async () => serveNest(await nest(), 'express', true),
  [`middleware of Nest ${version} on Fastify`]: async () => serveNest(await nest(), 'fastify', true),
})

export const SERVERS: Servers = {
  'Express 5': () => serveExpress(express(), '*rest'),
  'a strict Express 5': () => serveExpress(express(), '*rest', true),
  'the oldest Express 5': () => serveExpress(oldest('express')(), '*rest'),
  'Express 4': () => serveExpress(express4(), '*'),
  'the oldest Express 4': () => serveExpress(oldest('express4')(), '*'),
  Fastify: () => serveFastify(Fastify, {}),
  'the oldest Fastify': () => serveFastify(oldest('fastify'), {}),
  'a lenient Fastify': () => serveFastify(Fastify, { routerOptions: LENIENT }),
  'the oldest Fastify, lenient': () => serveFastify(oldest('fastify'), LENIENT),
  Koa: () => serveKoa(new Koa()),
  'the oldest Koa': () => serveKoa(new (oldest('koa'))()),
  Hono: () => serveHono(new Hono()),
  'a lenient Hono': () => serveHono(new Hono({ strict: false })),
  'the oldest Hono': () => serveHono(new (oldest('hono').Hono)()),
  'a function of requests': serveFunction,
  'node:http': serveNode,
  ...serversOfNest('12', newestNest),
  ...serversOfNest('11', newestNest11),
  ...serversOfNest('11, the oldest,', oldestNest),
}

const honoes = (create: typeof Hono) => () => serveHono(new create(), new create())
const koas = (create: typeof Koa) => () => serveKoa(new create(), new create())
const mountedOfNest = (version: string, nest: () => Nest | Promise<Nest>): Servers => ({
  [`Nest ${version} on Express`]: async () => serveNest(await nest(), 'express', false, MOUNT),
  [`Nest ${version} on Fastify`]: async () => serveNest(await nest(), 'fastify', false, MOUNT),
})

/** The same, mounted at {@link MOUNT}, with patterns for the path in the mount. */
export const MOUNTED: Servers = {
  'Express 5': () => serveExpress(express(), '*rest', false, express.Router()),
  'the oldest Express 5': () => serveExpress(oldest('express')(), '*rest', false, oldest('express').Router()),
  'Express 4': () => serveExpress(express4(), '*', false, express4.Router()),
  'the oldest Express 4': () => serveExpress(oldest('express4')(), '*', false, oldest('express4').Router()),
  Fastify: () => serveFastify(Fastify, {}, MOUNT),
  'a lenient Fastify': () => serveFastify(Fastify, { routerOptions: LENIENT }, MOUNT),
  'the oldest Fastify': () => serveFastify(oldest('fastify'), {}, MOUNT),
  'the oldest Fastify, lenient': () => serveFastify(oldest('fastify'), LENIENT, MOUNT),
  Koa: koas(Koa),
  'the oldest Koa': koas(oldest('koa')),
  Hono: honoes(Hono),
  'the oldest Hono': honoes(oldest('hono').Hono),
  ...mountedOfNest('12', newestNest),
  ...mountedOfNest('11', newestNest11),
  ...mountedOfNest('11, the oldest,', oldestNest),
}
