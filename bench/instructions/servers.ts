/**
 * The servers whose instructions are counted: three frameworks, each with every way to limit. A mode that only sets
 * headers is a function from the key to the value of `RateLimit`; a framework calls it and sets the headers. Modules are
 * loaded by the mode that needs them, as all code of a process takes part in what is counted.
 */
import { createServer, type RequestListener, type Server } from 'node:http'
import { BODY, keyOf } from '../http/handlers.js'

const LIMIT = 1_000_000
const WINDOW_MS = 60_000
const POLICY = `"default";q=${LIMIT};w=${WINDOW_MS / 1_000}`

/** The value of `RateLimit` for a key. */
type Item = (key: string) => string

/** The baseline: reads the key, and sets the headers to constants. */
const constant: Item = (key) => {
  if (key.length === 0) throw new Error('a request without a key')
  return `"default";r=${LIMIT - 1};t=60`
}

/** What a limiter by hand costs: a fixed window on a Map, with the same headers. */
function byHand(): Item {
  const counters = new Map<string, { count: number; endMs: number }>()
  return (key) => {
    const nowMs = performance.now()
    let counter = counters.get(key)
    if (counter === undefined || counter.endMs <= nowMs) {
      counter = { count: 0, endMs: nowMs + WINDOW_MS }
      counters.set(key, counter)
    }
    counter.count++
    return `"default";r=${LIMIT - counter.count};t=${Math.ceil((counter.endMs - nowMs) / 1_000)}`
  }
}

/** The options of `rateLimit` by mode: one limiter, or several. */
const MILLRACE: Readonly<Record<string, (windowMs: number) => readonly object[]>> = {
  Millrace: (window) => [{ limit: LIMIT, window }],
  'Millrace, two rules': (window) => [
    {
      rules: [
        { limit: LIMIT, window, name: 'burst' },
        { limit: LIMIT, window: 60 * window, name: 'hourly' },
      ],
    },
  ],
  'Millrace, routes': (window) => {
    const rule = { limit: LIMIT, window }
    return [{ ...rule, routes: { 'POST /login': { limit: 10, window }, 'GET /search': rule, '/': rule } }]
  },
  'Millrace, several limiters': (window) => [
    { limit: LIMIT, window },
    { limit: LIMIT, window: 60 * window },
  ],
}
export const OWN_MODES = Object.keys(MILLRACE)
export const CONSTANT = 'constant headers'
export const BY_HAND = 'a Map by hand'
export const PEER = 'the peer'

interface Framework {
  /** A server that sets the headers by a function. */
  headers(item: Item): Promise<Server>
  /** A server with `rateLimit` of Millrace, once for each of these options. */
  millrace(options: readonly object[]): Promise<Server>
  peer?(): Promise<Server>
}

const listening = async (server: Server): Promise<Server> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

const done: RequestListener = (_, response) => void response.end(BODY)

const nodeHttp: Framework = {
  headers: (item) =>
    listening(
      createServer((request, response) => {
        response.setHeader('RateLimit-Policy', POLICY)
        response.setHeader('RateLimit', item(keyOf(request)))
        done(request, response)
      }),
    ),
  async millrace(options) {
    const { rateLimit } = await import('millrace/http')
    let listener: RequestListener = done
    for (const own of [...options].reverse()) {
      const [limit, next] = [rateLimit({ ...own, key: keyOf } as never), listener]
      listener = (request, response) => limit(request, response, () => next(request, response))
    }
    return listening(createServer(listener))
  },
}

async function express(use: (app: import('express').Express) => unknown): Promise<Server> {
  const { default: make } = await import('express')
  const app = make()
  await use(app)
  app.get('/', done)
  return listening(createServer(app))
}

const expressServer: Framework = {
  headers: (item) =>
    express((app) =>
      app.use((request, response, next) => {
        response.setHeader('RateLimit-Policy', POLICY)
        response.setHeader('RateLimit', item(keyOf(request)))
        next()
      }),
    ),
  async millrace(options) {
    const { rateLimit } = await import('millrace/express')
    return express((app) => {
      for (const own of options) app.use(rateLimit({ ...own, key: keyOf } as never))
    })
  },
  async peer() {
    const { rateLimit } = await import('express-rate-limit')
    const own = { limit: LIMIT, windowMs: WINDOW_MS, keyGenerator: keyOf, validate: false }
    return express((app) => app.use(rateLimit({ ...own, standardHeaders: 'draft-8', legacyHeaders: false })))
  },
}

async function fastify(use: (app: import('fastify').FastifyInstance) => unknown): Promise<Server> {
  const { default: make } = await import('fastify')
  const app = make()
  await use(app)
  app.get('/', (_, reply) => void reply.send(BODY))
  await app.listen({ port: 0, host: '127.0.0.1' })
  return app.server
}

const fastifyServer: Framework = {
  headers: (item) =>
    fastify((app) =>
      app.addHook('onRequest', (request, reply, next) => {
        reply.header('RateLimit-Policy', POLICY)
        reply.header('RateLimit', item(keyOf(request)))
        next()
      }),
    ),
  async millrace(options) {
    const { rateLimit } = await import('millrace/fastify')
    return fastify(async (app) => {
      for (const own of options) await app.register(rateLimit, { ...own, key: keyOf } as never)
    })
  },
  async peer() {
    const { default: rateLimit } = await import('@fastify/rate-limit')
    const own = { max: LIMIT, timeWindow: WINDOW_MS, keyGenerator: keyOf }
    return fastify((app) => app.register(rateLimit, own))
  },
}

export const FRAMEWORKS = {
  'node:http': nodeHttp,
  Express: expressServer,
  Fastify: fastifyServer,
} satisfies Record<string, Framework>
export type FrameworkName = keyof typeof FRAMEWORKS

/** The names of the modes of a framework. */
export const modesOf = (framework: FrameworkName): string[] => [
  CONSTANT,
  BY_HAND,
  ...((FRAMEWORKS[framework] as Framework).peer === undefined ? [] : [PEER]),
  ...OWN_MODES,
]

/** Starts a server of a framework in a mode. The window is that of the shortest rules. */
export function startServer(framework: FrameworkName, mode: string, windowMs = WINDOW_MS): Promise<Server> {
  const own: Framework = FRAMEWORKS[framework]
  if (mode === CONSTANT) return own.headers(constant)
  if (mode === BY_HAND) return own.headers(byHand())
  return mode === PEER ? own.peer!() : own.millrace(MILLRACE[mode]!(windowMs))
}
