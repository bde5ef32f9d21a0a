// `/metrics`: the counts of the limiters, and how long requests take.
import type { FastifyInstance } from 'fastify'
import { register } from 'millrace/metrics'
import { Counter, Gauge, Registry } from 'prom-client'
import { Durations } from './durations.js'
import type { Engine } from './engine.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** When its headers had come, as `performance.now()` says it. */
    begun: number
  }
}

/** In seconds: a decision takes a tenth of a millisecond, a store a few, and its deadline ends it. */
const BOUNDS = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

export function metricsRoute(app: FastifyInstance, { limiters, envoy }: Engine): void {
  const registry = new Registry()
  const end = register(Object.fromEntries(limiters) as Parameters<typeof register>[0], registry)
  envoy?.metrics.register(registry)
  addProcessMetrics(registry)
  const durations = new Durations(
    'millrace_service_request_duration_seconds',
    'How long requests took, from the last byte of their headers until the answer was ready to be sent',
    BOUNDS,
  )
  app.decorateRequest('begun', 0)
  app.addHook('onRequest', (request, _reply, done) => {
    request.begun = performance.now()
    done()
  })
  // `onResponse` would add listeners to each answer.
  app.addHook('onSend', ({ begun, method, routeOptions }, { statusCode }, payload, done) => {
    durations.add(method, routeOptions.url ?? 'none', statusCode, (performance.now() - begun) / 1_000)
    done(null, payload)
  })
  app.addHook('onClose', end)
  app.get(
    '/metrics',
    {
      config: { scope: 'read', isOpenOnLoopback: true },
      schema: {
        summary: 'Counts for Prometheus',
        response: {
          200: { description: 'The text format.', content: { 'text/plain': { schema: { type: 'string' } } } },
        },
      },
    },
    async (_request, reply) =>
      reply.type(registry.contentType).send(`${await registry.metrics()}${durations}`),
  )
}

/**
 * Memory and processor time of the process, by their usual names. What prom-client collects by default begins to observe
 * the garbage collector and the event loop, and never ends.
 */
function addProcessMetrics(registry: Registry): void {
  new Gauge({
    name: 'process_resident_memory_bytes',
    help: 'Resident memory of the process',
    registers: [registry],
    collect() {
      this.set(process.memoryUsage.rss())
    },
  })
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'Processor time of the process, of all threads',
    registers: [registry],
    collect() {
      const { user, system } = process.cpuUsage()
      this.reset()
      this.inc((user + system) / 1e6)
    },
  })
}
