// Whether the process answers, and whether it should be sent requests.
import type { FastifyInstance } from 'fastify'
import type { Engine } from '../engine.js'
import { isUndecided, problem, sendProblem } from '../http/problem.js'
import { object, PROBLEM, TEXT } from '../http/schemas.js'

const STATUS = { description: 'It is.', ...object({ status: TEXT }, ['status']) }
const READY = { description: 'It is.', ...object({ status: TEXT, envoyConfig: TEXT }, ['status']) }
const NOT_READY = {
  description: 'It ends, or its store does not answer and onOutage is closed.',
  content: { 'application/problem+json': { schema: PROBLEM } },
}

/** Whether it should be sent requests: it does not end, and it can decide. One server of several may do so. */
export async function isReady({ isDraining, settings, once, probes }: Engine): Promise<boolean> {
  if (isDraining) return false
  if (settings.onOutage !== 'closed') return true
  const peeked = await Promise.all(probes.map((key) => once.peek(key)))
  return !peeked.every(isUndecided)
}

export function healthRoutes(app: FastifyInstance, engine: Engine): void {
  app.get(
    '/healthz',
    { schema: { summary: 'Whether the process answers', response: { 200: STATUS } } },
    async () => ({ status: 'ok' }),
  )
  app.get(
    '/readyz',
    { schema: { summary: 'Whether it should be sent requests', response: { 200: READY, 503: NOT_READY } } },
    async (_request, reply) => {
      if (engine.isDraining)
        return sendProblem(reply, problem(503, 'ERR_MILLRACE_DRAINING', 'This engine ends.'))
      if (!(await isReady(engine)))
        return sendProblem(
          reply,
          problem(503, 'ERR_MILLRACE_UNDECIDED', 'The store of counts does not answer.'),
        )
      return { status: 'ready', ...(engine.envoy?.isStale && { envoyConfig: 'stale' }) }
    },
  )
}
