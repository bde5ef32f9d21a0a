import type { RequestListener } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { groupLimit, type HonoOptions, rateLimit } from 'millrace/hono'
import { type FetchOptions, groupLimit as limitByGroup, rateLimit as limitFetch } from 'millrace/web'
import { type AnyOptions, decisionBody, type FrameworkDriver, isGroup, type Served } from './driver.js'
import { http2Client } from './http2-client.js'
import { type Create, createHttp1, createHttp2, servedBy } from './serve.js'

type Kept = { rateLimit?: Parameters<typeof decisionBody>[0] }

const status = (n: number) => new Response(null, { status: n })
const untilGone = (request: Request) =>
  new Promise<Response>((resolve) => {
    request.signal.addEventListener('abort', () => resolve(status(200)))
  })

/** Hono on node-server. */
const honoDriverWith = (create: Create): Omit<FrameworkDriver, 'name'> => ({
  async serve(...chain) {
    const app = new Hono<{ Variables: { rateLimit?: Parameters<typeof decisionBody>[0] } }>()
    const limiters = chain.map((options) =>
      isGroup(options) ? groupLimit(options as never) : rateLimit(options as HonoOptions),
    )
    for (const limiter of limiters) app.use(limiter)
    app.get('/', () => new Response('hello')) // its own response: it has not the headers of the context
    app.get('/decision', (context) => context.text(decisionBody(context.get('rateLimit'))))
    app.get('/status/:n', (context) => status(Number(context.req.param('n'))))
    app.get('/hang', ({ req }) => untilGone(req.raw))
    app.post('/login', () => status(401))
    return served(create, getRequestListener(app.fetch), limiters)
  },
  serveRepeatedly(options) {
    const limiter = rateLimit(options as HonoOptions)
    const inner = new Hono()
    inner.use(limiter)
    inner.get('/', limiter, () => new Response('hello'))
    const app = new Hono()
    app.use(limiter)
    app.get('/', (context) => inner.fetch(context.req.raw, context.env)) // another context of the same request
    return served(create, getRequestListener(app.fetch), [limiter])
  },
  header: (context, name) => (context as Context).req.header(name),
  statusOf: (context) => (context as Context).res.status,
  teapot: () => ({
    handler: (context: Context, { rule }: { rule: string }) => context.text(rule, 418),
  }),
})

export const honoDriver: FrameworkDriver = { name: 'Hono', ...honoDriverWith(createHttp1) }

export const honoHttp2Driver: FrameworkDriver = {
  name: 'Hono on HTTP/2',
  client: http2Client,
  ...honoDriverWith(createHttp2),
}

/** A plain function of web requests. */
export const fetchDriver: FrameworkDriver = {
  name: 'a function of requests',
  hasNoSocket: true,
  async serve(...chain) {
    const route = (request: Request): Response | Promise<Response> => {
      const { pathname } = new URL(request.url)
      const [, n] = /^\/status\/(\d+)$/.exec(pathname) ?? []
      if (pathname === '/hang') return untilGone(request)
      if (pathname === '/') return new Response('hello')
      if (pathname === '/decision') return new Response(decisionBody((request as Kept).rateLimit))
      return status(n === undefined ? 401 : Number(n))
    }
    const limiters: ReturnType<typeof limited>[] = []
    const limited = (options: AnyOptions, next: (request: Request) => Response | Promise<Response>) =>
      isGroup(options) ? limitByGroup(options as never, next) : limitFetch(options as FetchOptions, next)
    let handle: (request: Request) => Response | Promise<Response> = route
    for (const options of chain.toReversed()) {
      const limiter = limited(options, handle)
      limiters.unshift(limiter)
      handle = limiter
    }
    return served(
      createHttp1,
      getRequestListener((request) => handle(request)),
      limiters,
    )
  },
  serveRepeatedly(options) {
    const met = new WeakMap<Request, number>()
    const limiter = limitFetch(options as FetchOptions, (request): Response | Promise<Response> => {
      const times = (met.get(request) ?? 0) + 1
      met.set(request, times)
      return times < 3 ? limiter(request) : new Response('hello')
    })
    return served(
      createHttp1,
      getRequestListener((request) => limiter(request)),
      [limiter],
    )
  },
  header: (request, name) => (request as Request).headers.get(name) ?? undefined,
  statusOf: (response) => (response as Response).status,
  teapot: () => ({
    handler: (_: Request, { rule }: { rule: string }) =>
      new Response(rule, { status: 418, headers: { 'Content-Type': 'text/plain' } }),
  }),
}

async function served(
  create: Create,
  listener: ReturnType<typeof getRequestListener>,
  limiters: Parameters<typeof servedBy>[1],
): Promise<Served> {
  const server = create(listener as RequestListener)
  return servedBy(server, limiters)
}
