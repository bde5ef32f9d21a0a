import type { FastifyInstance } from 'fastify'

/** Whether the process answers. */
export function healthRoutes(app: FastifyInstance): void {
  app.get('/healthz', () => ({ status: 'ok' }))
}
