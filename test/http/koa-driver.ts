import type { RequestListener } from 'node:http'
import Koa from 'koa'
import { groupLimit, type KoaOptions, rateLimit } from 'millrace/koa'
import { type AnyOptions, decisionBody, type FrameworkDriver, isGroup, type Served } from './driver.js'
import { http2Client } from './http2-client.js'
import { type Create, createHttp1, createHttp2, servedBy } from './serve.js'

type Context = Koa.ParameterizedContext
type Limiter = ReturnType<typeof rateLimit | typeof groupLimit>

const limitBy = (options: AnyOptions): Limiter =>
  isGroup(options) ? groupLimit(options as never) : rateLimit(options as KoaOptions)

async function route(context: Context): Promise<void> {
  const { path, method, state } = context
  const [, status] = /^\/status\/(\d+)$/.exec(path) ?? []
  if (path === '/hang') await new Promise((resolve) => context.res.once('close', resolve))
  else if (path === '/') context.body = 'hello'
  else if (path === '/decision') context.body = decisionBody(state.rateLimit)
  else if (status !== undefined) context.status = Number(status)
  else if (path === '/login' && method === 'POST') context.status = 401
}

async function served(create: Create, limiters: readonly Limiter[]): Promise<Served> {
  const app = new Koa()
  for (const limiter of limiters) app.use(limiter)
  app.use(route)
  const server = create(app.callback() as RequestListener)
  return servedBy(server, limiters)
}

const koaDriverWith = (create: Create): Omit<FrameworkDriver, 'name'> => ({
  serve: (...chain) => served(create, chain.map(limitBy)),
  serveRepeatedly(options) {
    const limiter = rateLimit(options as KoaOptions)
    return served(create, [limiter, limiter, limiter])
  },
  header: (context, name) => (context as Context).get(name) || undefined,
  statusOf: (context) => (context as Context).status,
  teapot: () => ({
    handler(context: Context, { rule }: { rule: string }) {
      context.status = 418
      context.type = 'text/plain'
      context.body = rule
    },
  }),
})

export const koaDriver: FrameworkDriver = { name: 'Koa', ...koaDriverWith(createHttp1) }

export const koaHttp2Driver: FrameworkDriver = {
  name: 'Koa on HTTP/2',
  client: http2Client,
  ...koaDriverWith(createHttp2),
}
