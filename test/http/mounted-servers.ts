/** Servers that have a limiter mounted under a prefix, or a middleware that rewrites paths before the limiter. */
import { createServer, type RequestListener } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type { INestApplication } from '@nestjs/common'
import type express from 'express'
import type Fastify from 'fastify'
import type { Hono } from 'hono'
import type Koa from 'koa'
import { rateLimit as limitExpress } from 'millrace/express'
import { rateLimit as limitFastify } from 'millrace/fastify'
import { rateLimit as limitHono } from 'millrace/hono'
import { rateLimit as limitNode } from 'millrace/http'
import { rateLimit as limitKoa } from 'millrace/koa'
import type { AnyOptions } from './driver.js'
import { decorate, type Platform, startNest } from './nest-driver.js'
import { listen, shut } from './serve.js'
import type { Running } from './spelling-servers.js'
import { type Nest, oldest } from './versions.js'

/** Starts a server with these options. It answers each path. */
export type Serve = (options: AnyOptions) => Promise<Running>
export type Servers = Readonly<Record<string, Serve>>

export async function onNode(listener: RequestListener): Promise<Running> {
  const server = createServer(listener)
  return { url: await listen(server), close: () => shut(server) }
}

/** The path that is served in place of another. */
const REWRITTEN: Readonly<Record<string, string>> = {
  '/v1/secret': '/secret',
  '/alias': '/secret',
  '/v1/old': '/new',
  '/health': '/admin',
}
export const rewritten = (path: string): string => REWRITTEN[path] ?? path

export const mountsOfExpress = (name: string, create: typeof express): Servers => {
  const done = (_: unknown, response: express.Response) => void response.end('ok')
  const serve =
    (mount: (app: express.Express, limited: express.RequestHandler) => void): Serve =>
    (options) => {
      const app = create()
      mount(app, limitExpress(options))
      return onNode(app.use(done))
    }
  return {
    [`${name}, app.use`]: serve((app, limited) => app.use('/api', limited)),
    [`${name}, a router`]: serve((app, limited) => app.use('/api', create.Router().use(limited))),
    [`${name}, a router at a parameter`]: serve((app, limited) =>
      app.use('/:any', create.Router({ mergeParams: true }).use(limited)),
    ),
    [`${name}, an app`]: serve((app, limited) => app.use('/api', create().use(limited))),
  }
}

export const mountsOfKoa = (name: string, create: typeof Koa): Servers => {
  const { Router } = oldest('@koa/router')
  const serve =
    (mount: (limited: Koa.Middleware) => Koa.Middleware): Serve =>
    (options) => {
      const app = new create()
      app.use(mount(limitKoa(options)))
      return onNode(app.callback())
    }
  const done: Koa.Middleware = (context) => {
    context.body = 'ok'
  }
  return {
    [`${name}, koa-mount`]: serve((limited) =>
      oldest('koa-mount')('/api', new create().use(limited).use(done)),
    ),
    [`${name}, a router with a prefix`]: serve((limited) =>
      new Router({ prefix: '/api' }).use(limited).all('/{*rest}', done).routes(),
    ),
    [`${name}, a route of a router`]: serve((limited) =>
      new Router({ prefix: '/api' }).all('/{*rest}', limited, done).routes(),
    ),
    [`${name}, a router in a router`]: serve((limited) =>
      new Router().use('/api', new Router().use(limited).all('/{*rest}', done).routes()).routes(),
    ),
  }
}

export const mountsOfHono = (name: string, create: typeof Hono): Servers => {
  const limitedBy = (options: AnyOptions, app: Hono = new create()) => {
    app.use('*', limitHono(options))
    return app.all('*', (context) => context.text('ok'))
  }
  const serve =
    (mount: (options: AnyOptions) => Hono): Serve =>
    (options) =>
      onNode(getRequestListener(mount(options).fetch))
  return {
    [`${name}, route`]: serve((options) => new create().route('/api', limitedBy(options))),
    [`${name}, route in a route`]: serve((options) =>
      new create().route('/', new create().route('/api', limitedBy(options))),
    ),
    [`${name}, route at a parameter`]: serve((options) => new create().route('/:any', limitedBy(options))),
    [`${name}, basePath`]: serve((options) => limitedBy(options, new create().basePath('/api') as Hono)),
  }
}

export const mountsOfFastify = (name: string, create: typeof Fastify): Servers => {
  const serve =
    (prefix: string): Serve =>
    async (options) => {
      const app = create({ forceCloseConnections: true })
      app.register(
        async (inner) => {
          await inner.register(limitFastify, options)
          inner.all('/*', () => 'ok')
        },
        { prefix },
      )
      const url = await app.listen({ port: 0, host: '127.0.0.1' })
      return { url, close: () => app.close() }
    }
  return { [`${name}, a prefix`]: serve('/api'), [`${name}, a parameter`]: serve('/:any') }
}

/** A controller for all paths. */
function catchAll({ common: { All, Controller } }: Nest, path: string) {
  class Any {
    any() {
      return 'ok'
    }
  }
  Controller()(Any)
  decorate(Any, 'any', [All(path)])
  return Any
}

const serveNest =
  (
    nest: () => Nest | Promise<Nest>,
    platform: Platform,
    how: 'guard' | 'middleware',
    path: string,
    prepare: (app: INestApplication, limited?: unknown) => void,
    settings: object = {},
  ): Serve =>
  async (options) => {
    const version = await nest()
    const { RateLimitModule, RateLimitGuard, rateLimit } = version.millrace
    const isGuard = how === 'guard'
    const module = {
      module: class App {},
      imports: isGuard ? [RateLimitModule.forRoot(options as never)] : [],
      providers: isGuard ? [{ provide: version.core.APP_GUARD, useClass: RateLimitGuard }] : [],
      controllers: [catchAll(version, path)],
    }
    const limited = isGuard ? undefined : rateLimit(options)
    const app = await startNest(version, platform, module, (made) => prepare(made, limited), settings)
    return { url: await app.getUrl(), close: () => app.close() }
  }

export const mountsOfNest = (name: string, nest: () => Nest | Promise<Nest>): Servers => {
  const prefixed = (app: INestApplication) => void app.setGlobalPrefix('api')
  const mounted = (app: INestApplication, limited: unknown) => void app.use('/api', limited)
  return {
    [`${name} on Express, a guard and a global prefix`]: serveNest(
      nest,
      'express',
      'guard',
      '*rest',
      prefixed,
    ),
    [`${name} on Fastify, a guard and a global prefix`]: serveNest(nest, 'fastify', 'guard', '*', prefixed),
    [`${name} on Express, middleware`]: serveNest(nest, 'express', 'middleware', '*rest', mounted),
    [`${name} on Fastify, middleware`]: serveNest(nest, 'fastify', 'middleware', '*', mounted),
  }
}

export const rewritesOfExpress = (name: string, create: typeof express): Servers => ({
  [name]: (options) => {
    const app = create()
    app.use((request: express.Request, _: unknown, next: () => void) => {
      request.url = rewritten(request.url)
      next()
    })
    app.use(limitExpress(options))
    return onNode(app.use((_: unknown, response: express.Response) => void response.end('ok')))
  },
})

export const rewritesOfKoa = (name: string, create: typeof Koa): Servers => {
  const serve =
    (rewrite: (context: Koa.Context) => void): Serve =>
    (options) => {
      const app = new create()
      app.use((context, next) => {
        rewrite(context)
        return next()
      })
      app.use(limitKoa(options)).use((context) => {
        context.body = 'ok'
      })
      return onNode(app.callback())
    }
  return {
    [`${name}, path`]: serve((context) => {
      context.path = rewritten(context.path)
    }),
    [`${name}, newRouterPath`]: serve((context) => {
      context.newRouterPath = rewritten(context.path)
    }),
    [`${name}, routerPath`]: serve((context) => {
      context.routerPath = rewritten(context.path)
    }),
  }
}

export const rewritesOfFastify = (name: string, create: typeof Fastify): Servers => ({
  [`${name}, rewriteUrl`]: async (options) => {
    const app = create({ forceCloseConnections: true, rewriteUrl: ({ url }) => rewritten(url!) })
    app.register(limitFastify, options)
    app.after(() => app.all('/*', () => 'ok'))
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    return { url, close: () => app.close() }
  },
})

export const rewritesOfHono = (name: string, create: typeof Hono): Servers => ({
  [`${name}, getPath`]: (options) => {
    const app = new create({ getPath: ({ url }) => rewritten(new URL(url).pathname) })
    app.use('*', limitHono(options))
    app.all('*', (context) => context.text('ok'))
    return onNode(getRequestListener(app.fetch))
  },
})

export const rewritesOfNest = (name: string, nest: () => Nest | Promise<Nest>): Servers => {
  const rewriting = (app: INestApplication, limited?: unknown) => {
    app.use((request: { url: string }, _: unknown, next: () => void) => {
      request.url = rewritten(request.url)
      next()
    })
    if (limited !== undefined) app.use(limited)
  }
  const limiting = (app: INestApplication, limited?: unknown) => void (limited && app.use(limited))
  const rewriteUrl = { rewriteUrl: ({ url }: { url: string }) => rewritten(url) }
  return {
    [`${name} on Express, guard`]: serveNest(nest, 'express', 'guard', '*rest', rewriting),
    [`${name} on Express, middleware`]: serveNest(nest, 'express', 'middleware', '*rest', rewriting),
    [`${name} on Fastify, guard`]: serveNest(nest, 'fastify', 'guard', '*', limiting, rewriteUrl),
    [`${name} on Fastify, middleware`]: serveNest(nest, 'fastify', 'middleware', '*', limiting, rewriteUrl),
  }
}

/** A framework such as Connect: it keeps the target of a request, and cuts off what a handler is mounted at. */
export const mountsOnNode: Servers = {
  'node:http, mounted as by Connect': (options) => {
    const limited = limitNode(options)
    return onNode((request, response) => {
      Object.assign(request, { originalUrl: request.url, url: request.url!.slice('/api'.length) || '/' })
      limited(request, response, () => response.end('ok'))
    })
  },
}
