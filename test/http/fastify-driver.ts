import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import { type FastifyOptions, rateLimit } from 'millrace/fastify'
import { decisionBody, type FrameworkDriver } from './driver.js'
import { SERVER_OPTIONS } from './serve.js'

export const fastifyDriver: FrameworkDriver = {
  name: 'Fastify',
  async serve(...chain) {
    const app = Fastify({ forceCloseConnections: true, http: SERVER_OPTIONS })
    for (const options of chain) app.register(rateLimit, options as FastifyOptions)
    app.get('/', (_, reply) => void reply.send('hello'))
    app.get('/decision', ({ rateLimit }, reply) => void reply.send(decisionBody(rateLimit ?? undefined)))
    app.get<{ Params: { n: string } }>('/status/:n', ({ params }, reply) => {
      reply.code(Number(params.n)).send()
    })
    app.get('/hang', () => {})
    app.post('/login', (_, reply) => void reply.code(401).send())
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    return { url, reset: (key) => app.resetRateLimit(key), close: () => app.close() }
  },
  header: (request, name) => (request as FastifyRequest).headers[name] as string | undefined,
  statusOf: (reply) => (reply as FastifyReply).statusCode,
  teapot: () => ({
    handler(_: FastifyRequest, reply: FastifyReply, { rule }: { rule: string }) {
      reply.code(418).type('text/plain').send(rule)
    },
  }),
}
