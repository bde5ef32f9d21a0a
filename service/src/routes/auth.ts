// `GET /v1/auth` for `auth_request` of nginx: the key and the cost are headers, the answer has no body.
import type { FastifyInstance } from 'fastify'
import type { Engine } from '../engine.js'
import { writeHeaders } from '../http/headers.js'
import { keyIn } from '../http/key-header.js'
import { isUndecided, problem, ServiceError, sendProblem } from '../http/problem.js'
import { answers, PROBLEM } from '../http/schemas.js'
import { wireDecision } from '../http/wire.js'
import { limiterOf } from '../limiters.js'
import { sendUndecided } from './decide.js'

/** A caller without a token or its scope is a 401: nginx would show a 403 to the client as over the limit. */
const { 200: _, ...PROBLEMS } = answers({}, [400, 401, 503])
const header = (description: string) => ({ type: 'string', description })

export function authRoute(app: FastifyInstance, { limiters }: Engine): void {
  app.get(
    '/v1/auth',
    {
      config: { scope: 'decide', isNeverForbidden: true },
      schema: {
        summary: 'Decides by headers: 204, or 403 for a request that is over the limit',
        headers: {
          type: 'object',
          properties: {
            'x-millrace-key': header('The key.'),
            'x-millrace-cost': header('The cost. Default: 1.'),
            'x-millrace-limiter': header('The name of a limiter. Default: the first one.'),
          },
          required: ['x-millrace-key'],
        },
        response: {
          204: { description: 'The request is admitted.', type: 'null' },
          ...PROBLEMS,
          403: {
            description: 'The request is refused. Retry-After and the RateLimit fields say until when.',
            content: { 'application/problem+json': { schema: PROBLEM } },
          },
        },
      },
    },
    async ({ headers }, reply) => {
      const key = keyIn(headers['x-millrace-key'] as string)
      const [, limiter] = limiterOf(limiters, headers['x-millrace-limiter'] as string | undefined)
      const decision = await limiter.check(key, costIn(headers['x-millrace-cost'] as string | undefined))
      if (isUndecided(decision)) return sendUndecided(reply, decision, 'check')
      writeHeaders(reply, limiter, decision)
      if (decision.allowed) return reply.code(204).send()
      return sendProblem(
        reply,
        problem(403, 'ERR_MILLRACE_LIMITED', `${decision.rule} refuses this request.`, {
          decision: wireDecision(decision),
        }),
      )
    },
  )
}

function costIn(text = '1'): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  const field = 'x-millrace-cost'
  throw new ServiceError(400, 'ERR_MILLRACE_INVALID_COST', `${field}: expected a whole number`, { field })
}
