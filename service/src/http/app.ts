import Fastify, { type FastifyInstance } from 'fastify'
import type { Limiters } from '../limiters.js'
import { checkRoutes } from '../routes/check.js'
import { healthRoutes } from '../routes/health.js'
import { limiterRoutes } from '../routes/limiters.js'
import { problem, problemOf, sendProblem } from './problem.js'

/** The HTTP server of an engine, before it listens. */
export function createApp(limiters: Limiters): FastifyInstance {
  const app = Fastify({
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false } },
    requestIdHeader: 'x-request-id',
    forceCloseConnections: 'idle',
  })
  app.removeContentTypeParser('text/plain')
  app.setSerializerCompiler(() => JSON.stringify)
  app.addHook('onRequest', async (request, reply) => {
    if ('x-request-id' in request.headers) reply.header('x-request-id', request.id)
  })
  app.setErrorHandler((error, _request, reply) => sendProblem(reply, problemOf(error)))
  app.setNotFoundHandler((request, reply) =>
    sendProblem(reply, problem(404, 'ERR_MILLRACE_NOT_FOUND', `There is no ${request.method} of this path.`)),
  )
  checkRoutes(app, limiters)
  limiterRoutes(app, limiters)
  healthRoutes(app)
  return app
}
