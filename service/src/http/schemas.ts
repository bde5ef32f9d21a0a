// The schemas of requests and answers. `/openapi.json` has them, and Fastify checks each request by them.
const KEY = { type: 'string', minLength: 1, maxLength: 65_536 }
const COST = { type: 'integer', minimum: 0 }
const FIGURE = { anyOf: [{ type: 'number' }, { const: 'Infinity' }] }
const LIMIT = { anyOf: [FIGURE, { type: 'object', additionalProperties: FIGURE }] }
const CHECK = { key: KEY, cost: COST, limiter: { type: 'string' }, limit: LIMIT }
export const MOST_CHECKS = 1_024

const object = (properties: object, required: readonly string[] = []) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})

export const CHECK_BODY = {
  anyOf: [
    object(CHECK, ['key']),
    object({ checks: { type: 'array', minItems: 1, maxItems: MOST_CHECKS, items: object(CHECK, ['key']) } }, [
      'checks',
    ]),
  ],
}

export const MANY_ANSWER = {}
