import type { FastifyInstance } from 'fastify'
import type { Limiters } from '../limiters.js'

/** `GET /v1/limiters`: the names of the limiters, the default one first, and their rules. */
export function limiterRoutes(app: FastifyInstance, limiters: Limiters): void {
  app.get('/v1/limiters', () => ({
    limiters: [...limiters].map(([name, { rules }]) => ({ name, rules })),
    idempotency: false,
  }))
}
