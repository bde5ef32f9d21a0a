import { groupLimit, type NodeOptions, type NodeRequest, type NodeResponse, rateLimit } from 'millrace/http'
import { type AnyOptions, decisionBody, type FrameworkDriver, isGroup, type Served } from './driver.js'
import { http2Client } from './http2-client.js'
import { type Create, createHttp1, createHttp2, servedBy } from './serve.js'

type Limiter = ReturnType<typeof rateLimit | typeof groupLimit>

const limitBy = (options: AnyOptions): Limiter =>
  isGroup(options) ? groupLimit(options as never) : rateLimit(options as NodeOptions)

/** A target that is no URL has no route. */
const pathOf = (target: string): string =>
  URL.canParse(target, 'http://server') ? new URL(target, 'http://server').pathname : '/nowhere'

/** The routes of the suite. */
function route(
  request: NodeRequest & { rateLimit?: Parameters<typeof decisionBody>[0] },
  response: NodeResponse,
) {
  const pathname = pathOf(request.url!)
  if (pathname === '/hang') return
  const [, status] = /^\/status\/(\d+)$/.exec(pathname) ?? []
  response.statusCode = status !== undefined ? Number(status) : pathname === '/login' ? 401 : 200
  response.end(pathname === '/decision' ? decisionBody(request.rateLimit) : pathname === '/' ? 'hello' : '')
}

async function served(create: Create, limiters: readonly Limiter[]): Promise<Served> {
  const server = create((request, response) => {
    const next = (i: number): void =>
      i < limiters.length ? limiters[i]!(request, response, () => next(i + 1)) : route(request, response)
    next(0)
  })
  return servedBy(server, limiters)
}

const nodeDriverWith = (create: Create): Omit<FrameworkDriver, 'name'> => ({
  serve: (...chain) => served(create, chain.map(limitBy)),
  serveRepeatedly(options) {
    const limiter = rateLimit(options as NodeOptions)
    return served(create, [limiter, limiter, limiter])
  },
  header: (request, name) => (request as NodeRequest).headers[name] as string | undefined,
  statusOf: (response) => (response as NodeResponse).statusCode,
  teapot: () => ({
    handler(_: NodeRequest, response: NodeResponse, { rule }: { rule: string }) {
      response.statusCode = 418
      response.setHeader('Content-Type', 'text/plain')
      response.end(rule)
    },
  }),
})

export const nodeDriver: FrameworkDriver = { name: 'node:http', ...nodeDriverWith(createHttp1) }

export const http2Driver: FrameworkDriver = {
  name: 'node:http2',
  client: http2Client,
  ...nodeDriverWith(createHttp2),
}
