// `/json`: the requests of Envoy's contract as JSON, as envoyproxy/ratelimit takes them.
import type { FastifyInstance } from 'fastify'
import type { Engine } from '../engine.js'
import { OVER_LIMIT } from '../envoy/contract.js'
import { jsonOf, requestOf } from '../envoy/json.js'
import { ANY_OBJECT, answers, REFUSED_BODY } from '../http/schemas.js'

const OVER = { description: 'Over the limit: the answer, with OVER_LIMIT.', ...ANY_OBJECT }

export function envoyJsonRoute(app: FastifyInstance, { envoy }: Engine): void {
  if (envoy === undefined) return
  app.post(
    '/json',
    {
      config: { scope: 'decide' },
      schema: {
        summary: "Decides a request of Envoy's contract, as JSON",
        body: ANY_OBJECT,
        response: { ...answers(ANY_OBJECT, REFUSED_BODY), 429: OVER },
      },
    },
    async ({ body }, reply) => {
      const response = await envoy.decide(requestOf(body))
      if (response.overallCode === OVER_LIMIT) reply.code(429)
      return jsonOf(response)
    },
  )
}
