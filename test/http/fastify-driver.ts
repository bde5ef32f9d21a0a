import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { type FastifyGroupOptions, type FastifyOptions, groupLimit, rateLimit } from 'millrace/fastify'
import { decisionBody, type FrameworkDriver, isGroup, type Served } from './driver.js'
import { http2Client } from './http2-client.js'
import { closeSessions, SERVER_OPTIONS, trackSessions } from './serve.js'

async function served(app: FastifyInstance): Promise<Served> {
  trackSessions(app.server)
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const close = () => {
    closeSessions(app.server)
    return app.close()
  }
  return { url, reset: (key) => app.resetRateLimit(key), stats: () => app.rateLimitStats(), close }
}

const fastifyDriverWith = (options: object): Omit<FrameworkDriver, 'name'> => ({
  async serve(...chain) {
    const app = Fastify(options) as FastifyInstance
    for (const options of chain) {
      if (isGroup(options)) app.register(groupLimit, options as unknown as FastifyGroupOptions)
      else app.register(rateLimit, options as FastifyOptions)
    }
    app.get('/', (_, reply) => void reply.send('hello'))
    app.get('/decision', ({ rateLimit }, reply) => void reply.send(decisionBody(rateLimit ?? undefined)))
    app.get<{ Params: { n: string } }>('/status/:n', ({ params }, reply) => {
      reply.code(Number(params.n)).send()
    })
    app.get('/hang', () => {})
    app.post('/login', (_, reply) => void reply.code(401).send())
    return served(app)
  },
  /** A request that its handler gives up meets the hooks of `preHandler` again. */
  serveRepeatedly(limits) {
    const app = Fastify(options) as FastifyInstance
    app.register(rateLimit, { ...(limits as FastifyOptions), hook: 'preHandler' })
    app.setNotFoundHandler({ preHandler: (_, __, done) => done() }, (_, reply) => {
      reply.code(200).send('hello')
    })
    app.get('/', (_, reply) => void reply.callNotFound())
    return served(app)
  },
  header: (request, name) => (request as FastifyRequest).headers[name] as string | undefined,
  statusOf: (reply) => (reply as FastifyReply).statusCode,
  teapot: () => ({
    handler(_: FastifyRequest, reply: FastifyReply, { rule }: { rule: string }) {
      reply.code(418).type('text/plain').send(rule)
    },
  }),
})

export const fastifyDriver: FrameworkDriver = {
  name: 'Fastify',
  ...fastifyDriverWith({ forceCloseConnections: true, http: SERVER_OPTIONS }),
}

export const fastifyHttp2Driver: FrameworkDriver = {
  name: 'Fastify on HTTP/2',
  client: http2Client,
  ...fastifyDriverWith({ http2: true }),
}
