// Decisions: `/v1/check`, `/v1/peek` and `/v1/reserve`.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { CheckOptions, Decision } from 'millrace'
import type { Engine } from '../engine.js'
import { writeHeaders } from '../http/headers.js'
import { isUndecided, problem, problemOf, sendProblem, undecided } from '../http/problem.js'
import {
  answers,
  CHECK_ANSWER,
  COST,
  checkBody,
  DECISION,
  KEY,
  LIMITER,
  object,
  REFUSED_BODY,
} from '../http/schemas.js'
import { fromWire, type WireNumber, wireDecision } from '../http/wire.js'
import { type AnyLimiter, limiterOf } from '../limiters.js'
import { requireScope } from '../security/callers.js'

type Limit = WireNumber | Readonly<Record<string, WireNumber>>

interface Check {
  readonly key: string
  readonly cost?: number
  readonly limiter?: string
  readonly limit?: Limit
}
type Body = Check & { readonly checks?: readonly Check[]; readonly token?: boolean }
type Method = 'check' | 'peek'
interface Asked {
  Body: Body
  Querystring: { status?: 'decision' }
}

export function decideRoutes(app: FastifyInstance, engine: Engine): void {
  const { maxBatch } = engine.settings
  for (const method of ['check', 'peek'] as const) {
    app.post<Asked>(
      `/v1/${method}`,
      {
        config: { scope: 'decide', isIdempotent: method === 'check' },
        schema: {
          summary:
            method === 'check' ? 'Decides, and charges what is admitted' : 'Decides, and charges nothing',
          querystring: object({ status: { const: 'decision' } }),
          body: checkBody(maxBatch),
          response: answers(CHECK_ANSWER, [...REFUSED_BODY, 429, ...(method === 'check' ? [409, 422] : [])]),
        },
      },
      (request, reply) => {
        if (hasLimit(request.body)) requireScope(request, 'change')
        return request.body.checks === undefined
          ? one(engine, method, request, reply)
          : many(engine, method, request.body, request.body.checks)
      },
    )
  }
  app.post<{ Body: Required<Pick<Check, 'key' | 'cost'>> & Check }>(
    '/v1/reserve',
    {
      config: { scope: 'decide', isIdempotent: true },
      schema: {
        summary: 'Charges the most that a request may use, until /v1/commit says what it used',
        body: object({ key: KEY, cost: COST, limiter: LIMITER }, ['key', 'cost']),
        response: answers(DECISION, [...REFUSED_BODY, 409, 422]),
      },
    },
    async ({ body }, reply) => {
      const { key, cost } = body
      const [name, limiter] = limiterOf(engine.limiters, body.limiter)
      const decision = await limiter.check(key, cost)
      if (isUndecided(decision)) return sendUndecided(reply, decision, 'check')
      const reservation = decision.allowed ? engine.charges.tokenOf(name, key, cost, decision) : undefined
      return { ...wireDecision(decision), ...(reservation !== undefined && { reservation }) }
    },
  )
}

/** Answers at once if the limiter does: a promise costs a request some time. */
function one(engine: Engine, method: Method, request: FastifyRequest<Asked>, reply: FastifyReply) {
  const { body, query } = request
  const [name, limiter] = limiterOf(engine.limiters, body.limiter)
  const decided = limiter[method](body.key, body.cost, optionsOf(body.limit))
  const finish = (decision: Decision) => {
    if (isUndecided(decision)) return sendUndecided(reply, decision, method)
    const answer = answerOf(engine, name, body, body.token, decision)
    if (query.status !== 'decision') return answer // sent by Fastify: a reply that is returned costs listeners
    writeHeaders(reply, limiter as AnyLimiter, decision)
    if (decision.allowed) return answer
    const detail = `${decision.rule} refuses this request.`
    return sendProblem(reply, problem(429, 'ERR_MILLRACE_LIMITED', detail, { decision: answer }))
  }
  return decided instanceof Promise ? decided.then(finish) : finish(decided)
}

/**
 * Every check is asked for before the first answer comes, so they are decided in order, and travel together. What is
 * decided at once is read at once: later checks of the same key change what is left.
 */
async function many(engine: Engine, method: Method, { token }: Body, checks: readonly Check[]) {
  const decisions = await Promise.all(
    checks.map((check) => {
      const failed = (error: unknown) => ({ error: problemOf(error) })
      try {
        const [name, limiter] = limiterOf(engine.limiters, check.limiter)
        const finish = (decision: Decision) =>
          isUndecided(decision)
            ? { error: undecided(decision, method) }
            : answerOf(engine, name, check, token, decision)
        const decided = limiter[method](check.key, check.cost, optionsOf(check.limit))
        return decided instanceof Promise ? decided.then(finish).catch(failed) : finish(decided)
      } catch (error) {
        return failed(error)
      }
    }),
  )
  return { decisions }
}

function answerOf(
  engine: Engine,
  name: string,
  check: Check,
  wantsToken: boolean | undefined,
  decision: Decision,
) {
  const answer = wireDecision(decision)
  if (!wantsToken) return answer
  const token = engine.charges.tokenOf(name, check.key, check.cost ?? 1, decision)
  return token === undefined ? answer : { ...answer, token }
}

export const sendUndecided = (reply: FastifyReply, decision: Decision, method: Method): FastifyReply =>
  sendProblem(reply.header('retry-after', 1), undecided(decision, method))

const hasLimit = ({ limit, checks }: Body): boolean =>
  limit !== undefined || (checks?.some((check) => check.limit !== undefined) ?? false)

function optionsOf(limit: Limit | undefined): CheckOptions | undefined {
  if (limit === undefined) return undefined
  if (typeof limit !== 'object') return { limit: fromWire(limit) }
  return { limit: Object.fromEntries(Object.entries(limit).map(([rule, own]) => [rule, fromWire(own)])) }
}
