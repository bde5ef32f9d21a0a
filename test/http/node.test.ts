import { createServer } from 'node:http'
import { type NodeOptions, type NodeRequest, type NodeResponse, rateLimit } from 'millrace/http'
import { testFramework } from './conformance.js'
import { decisionBody } from './driver.js'
import { listen, shut } from './serve.js'

/** The routes of the suite. */
function route(
  request: NodeRequest & { rateLimit?: Parameters<typeof decisionBody>[0] },
  response: NodeResponse,
) {
  const { pathname } = new URL(request.url!, 'http://server')
  if (pathname === '/hang') return
  const [, status] = /^\/status\/(\d+)$/.exec(pathname) ?? []
  response.statusCode = status !== undefined ? Number(status) : pathname === '/login' ? 401 : 200
  response.end(pathname === '/decision' ? decisionBody(request.rateLimit) : pathname === '/' ? 'hello' : '')
}

testFramework({
  name: 'node:http',
  async serve(...chain) {
    const limiters = chain.map((options) => rateLimit(options as NodeOptions))
    const server = createServer((request, response) => {
      const next = (i: number): void =>
        i < limiters.length ? limiters[i]!(request, response, () => next(i + 1)) : route(request, response)
      next(0)
    })
    return {
      url: await listen(server),
      reset: (key) => limiters[0]!.reset(key),
      async close() {
        await shut(server)
        await Promise.all(limiters.map((limiter) => limiter.close()))
      },
    }
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
