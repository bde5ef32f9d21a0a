import type { FastifyInstance } from 'fastify'
import type { CheckOptions, Decision } from 'millrace'
import { isUndecided, problemOf, sendProblem, undecided } from '../http/problem.js'
import { CHECK_BODY, MANY_ANSWER } from '../http/schemas.js'
import { fromWire, type WireNumber, wireDecision } from '../http/wire.js'
import { type Limiters, limiterOf } from '../limiters.js'

type Limit = WireNumber | Readonly<Record<string, WireNumber>>

interface Check {
  readonly key: string
  readonly cost?: number
  readonly limiter?: string
  readonly limit?: Limit
}
type Body = Check & { readonly checks?: readonly Check[] }

/** `/v1/check` and `/v1/peek`, of one key and of many. */
export function checkRoutes(app: FastifyInstance, limiters: Limiters): void {
  for (const method of ['check', 'peek'] as const) {
    app.post<{ Body: Body }>(
      `/v1/${method}`,
      { schema: { body: CHECK_BODY, response: MANY_ANSWER } },
      async (request, reply) => {
        const { checks } = request.body
        if (checks === undefined) {
          const decision = await decide(limiters, method, request.body)
          if (isUndecided(decision)) return sendProblem(reply.header('retry-after', 1), undecided(decision))
          return wireDecision(decision)
        }
        const decided = await Promise.all(
          checks.map(async (check) => {
            try {
              const decision = await decide(limiters, method, check)
              return isUndecided(decision) ? { error: undecided(decision) } : wireDecision(decision)
            } catch (error) {
              return { error: problemOf(error) }
            }
          }),
        )
        return { decisions: decided }
      },
    )
  }
}

function decide(limiters: Limiters, method: 'check' | 'peek', check: Check): Decision | Promise<Decision> {
  const limiter = limiterOf(limiters, check.limiter)
  return limiter[method](check.key, check.cost, optionsOf(check.limit))
}

function optionsOf(limit: Limit | undefined): CheckOptions | undefined {
  if (limit === undefined) return undefined
  if (typeof limit !== 'object') return { limit: fromWire(limit) }
  return { limit: Object.fromEntries(Object.entries(limit).map(([rule, own]) => [rule, fromWire(own)])) }
}
