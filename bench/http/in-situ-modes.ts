/**
 * What the servers of the case `in-situ` do with a request: in turn, their baseline and one of their modes. To
 * compare another limiter or framework, add a mode or a server.
 */
import type { RequestListener } from 'node:http'
import fastifyRateLimit from '@fastify/rate-limit'
import express, { type RequestHandler } from 'express'
import { rateLimit as expressRateLimit } from 'express-rate-limit'
import Fastify, { type FastifyInstance } from 'fastify'
import { createLimiter } from 'millrace'
import { rateLimit as forExpress } from 'millrace/express'
import { rateLimit as forFastify } from 'millrace/fastify'
import { rateLimit as forNode } from 'millrace/http'
import { bareMap, LIMIT, WINDOW_MS } from '../peers.js'
import { answer, answerConstantly, BODY, keyOf } from './handlers.js'
import { IN_SITU_KEYS } from './in-situ-load.js'

/** Makes what serves the requests in one mode. */
export type Mode = () => RequestListener | Promise<RequestListener>

const MILLRACE = { limit: LIMIT, window: WINDOW_MS, maxKeys: 2 * IN_SITU_KEYS }
const MIDDLEWARE = { ...MILLRACE, key: keyOf, standard: 'x-ratelimit' } as const

/** Reads the key and decides, then sets constant headers. */
function deciding(decide: (key: string) => boolean): RequestListener {
  return (request, response) => {
    if (!decide(keyOf(request))) throw new Error('the load stays below the limit')
    answerConstantly(response)
  }
}

/** The headers that all middleware sets here. */
const CONSTANTS = Object.entries({
  'X-RateLimit-Limit': LIMIT,
  'X-RateLimit-Remaining': LIMIT - 1,
  'X-RateLimit-Reset': WINDOW_MS / 1_000,
})

let current: RequestHandler
const app = express()
app.use((request, response, next) => current(request, response, next))
app.get('/', (_, response) => void response.end(BODY))

/**
 * One app serves the baseline and the mode. Each app gives requests another prototype: two in one process
 * would make every access to a request slow.
 */
function expressWith(middleware: RequestHandler): RequestListener {
  return (request, response) => {
    current = middleware
    app(request, response)
  }
}

async function fastifyWith(limit: (app: FastifyInstance) => unknown): Promise<RequestListener> {
  const app = Fastify()
  await limit(app)
  app.get('/', (_, reply) => void reply.send(BODY))
  await app.ready()
  return (request, response) => app.routing(request, response)
}

/** The mode that is the baseline once more: how much a server differs from itself. */
export const BASELINE = 'constant headers'

interface InSituServer {
  /** Reads the key and sets as many headers as the modes do, to constants. */
  readonly baseline: Mode
  readonly modes: Readonly<Record<string, Mode>>
}

export const IN_SITU_SERVERS = {
  'node:http': {
    baseline: () => deciding((key) => key.length > 0),
    modes: {
      'a Map counter': () => deciding(bareMap()),
      'check alone': () => {
        const limiter = createLimiter(MILLRACE)
        return deciding((key) => limiter.check(key).allowed)
      },
      'check, figures in headers': () => {
        const limiter = createLimiter(MILLRACE)
        return (request, response) => answer(response, limiter.check(keyOf(request)))
      },
      'rateLimit of Millrace': () => {
        const limited = forNode(MIDDLEWARE)
        return (request, response) => limited(request, response, () => response.end(BODY))
      },
    },
  },
  express: {
    baseline: () =>
      expressWith((request, response, next) => {
        if (keyOf(request).length > 0) for (const [name, value] of CONSTANTS) response.setHeader(name, value)
        next()
      }),
    modes: {
      'rateLimit of Millrace': () => expressWith(forExpress(MIDDLEWARE)),
      'express-rate-limit': () =>
        expressWith(
          expressRateLimit({
            windowMs: WINDOW_MS,
            limit: LIMIT,
            keyGenerator: keyOf,
            standardHeaders: false,
            legacyHeaders: true,
            validate: false,
          }),
        ),
    },
  },
  fastify: {
    baseline: () =>
      fastifyWith((app) =>
        app.addHook('onRequest', (request, reply, done) => {
          if (keyOf(request).length > 0) for (const [name, value] of CONSTANTS) reply.header(name, value)
          done()
        }),
      ),
    modes: {
      'rateLimit of Millrace': () => fastifyWith((app) => app.register(forFastify, MIDDLEWARE)),
      '@fastify/rate-limit': () =>
        fastifyWith((app) =>
          app.register(fastifyRateLimit, {
            max: LIMIT,
            timeWindow: WINDOW_MS,
            cache: 2 * IN_SITU_KEYS,
            keyGenerator: keyOf,
          }),
        ),
    },
  },
} satisfies Record<string, InSituServer>

export type ServerName = keyof typeof IN_SITU_SERVERS
