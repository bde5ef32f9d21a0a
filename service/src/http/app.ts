// The HTTP server of an engine, before it listens.
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import swagger from '@fastify/swagger'
import Fastify, { type FastifyInstance, type FastifyServerOptions, LogController } from 'fastify'
import type { Engine } from '../engine.js'
import { keepAnswers } from '../idempotency/idempotent.js'
import { metricsRoute } from '../metrics.js'
import type { Settings } from '../options/table.js'
import { authRoute } from '../routes/auth.js'
import { changeRoutes } from '../routes/change.js'
import { decideRoutes } from '../routes/decide.js'
import { envoyJsonRoute } from '../routes/envoy-json.js'
import { healthRoutes } from '../routes/health.js'
import { policyRoutes } from '../routes/policies.js'
import { readRoutes } from '../routes/read.js'
import { checkScopes } from '../security/callers.js'
import { tlsOf } from '../security/tls.js'
import { takeKeyHeader, withKeyHeader } from './key-header.js'
import { problem, problemOf, sendProblem } from './problem.js'
import { ANY_OBJECT } from './schemas.js'

const FIRST_SERVER_ERROR = 500

export async function createApp(
  engine: Engine,
  logger: FastifyServerOptions['logger'],
): Promise<FastifyInstance> {
  const { settings } = engine
  const app = Fastify({
    ...limitsOf(settings),
    logger: logger!,
    childLoggerFactory: (parent) => parent, // one for each request takes as long as the decision
    logController: new LogController({ disableRequestLogging: true }),
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, strict: false } },
    requestIdHeader: 'x-request-id',
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    clientErrorHandler: refuseBrokenRequest,
    frameworkErrors: (_error, _request, reply) => void sendProblem(reply, BAD_URL),
  }) as unknown as FastifyInstance
  app.server.maxConnections = settings.maxConnections
  app.removeContentTypeParser('text/plain')
  app.setSerializerCompiler(() => JSON.stringify)
  // Hooks that call back: a promise costs each request some time.
  app.addHook('onRequest', (request, reply, done) => {
    if ('x-request-id' in request.headers) reply.header('x-request-id', request.id)
    if (engine.isDraining) reply.header('connection', 'close') // the client's next request goes to another engine
    done()
  })
  app.setErrorHandler((error, request, reply) => {
    const found = problemOf(error)
    if (found.code === 'ERR_MILLRACE_INTERNAL')
      request.log.error({ reqId: request.id, stack: (error as Error).stack }, 'a request failed')
    if (found.status === 401) reply.header('www-authenticate', 'Bearer')
    if (found.status >= FIRST_SERVER_ERROR) reply.header('retry-after', 1)
    return sendProblem(reply, found)
  })
  app.setNotFoundHandler((request, reply) =>
    sendProblem(
      reply,
      problem(404, 'ERR_MILLRACE_NOT_FOUND', `There is no such route for ${request.method}.`),
    ),
  )
  await app.register(swagger, {
    openapi: documentOf(),
    ...(settings.keyHeader && { transform: withKeyHeader as never }),
  })
  checkScopes(app, engine.callers)
  if (settings.keyHeader) takeKeyHeader(app, engine.charges)
  keepAnswers(app, engine.records, settings.onOutage === 'closed')
  await app.register(async (routes) => {
    for (const add of [
      decideRoutes,
      changeRoutes,
      readRoutes,
      policyRoutes,
      authRoute,
      envoyJsonRoute,
      healthRoutes,
      metricsRoute,
    ])
      add(routes, engine)
    routes.get(
      '/openapi.json',
      {
        config: { scope: 'read', isOpenOnLoopback: true },
        schema: { summary: 'This document', response: { 200: { description: 'OpenAPI.', ...ANY_OBJECT } } },
      },
      async () => app.swagger(),
    )
  })
  return app
}

const BAD_URL = problem(400, 'ERR_MILLRACE_INVALID_OPTION', 'The path is not a valid one.')
const STATUS_OF_ERROR: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
}

/** Answers what is no HTTP, and ends the connection. The error has the bytes of the request, so it is not logged. */
function refuseBrokenRequest({ code }: NodeJS.ErrnoException, socket: Socket): void {
  const status = STATUS_OF_ERROR[code ?? ''] ?? '400 Bad Request'
  if (socket.writable && code !== 'ECONNRESET')
    socket.write(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`)
  socket.destroy()
}

/** Slow clients are cut, and nothing that a client sends is without a bound. */
function limitsOf({
  maxBody,
  maxHeaders,
  requestTimeout,
  keepAlive,
  ...settings
}: Settings): FastifyServerOptions {
  const http = {
    maxHeaderSize: maxHeaders,
    connectionsCheckingInterval: Math.min(requestTimeout, 1_000),
    requestTimeout,
    headersTimeout: requestTimeout,
  }
  const limits = { bodyLimit: maxBody, requestTimeout, keepAliveTimeout: keepAlive, http }
  if (settings.tlsCert === undefined) return limits
  const { http: _, ...others } = limits
  return { ...others, https: { ...http, ...tlsOf(settings) } } as FastifyServerOptions
}

function documentOf() {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  return {
    openapi: '3.1.0',
    info: { title: 'Millrace decision service', version },
    components: { securitySchemes: { token: { type: 'http' as const, scheme: 'bearer' } } },
    security: [{ token: [] }, {}],
  }
}
