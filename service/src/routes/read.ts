// What can be read: usage, limiters and their counters.
import type { FastifyInstance } from 'fastify'
import type { Engine } from '../engine.js'
import {
  ANY_OBJECT,
  answers,
  BOOLEAN,
  KEY,
  LIMITER,
  NUMBER,
  object,
  REFUSED,
  RULE,
  TEXT,
} from '../http/schemas.js'
import { toWire } from '../http/wire.js'
import { limiterOf } from '../limiters.js'

interface Usage {
  readonly key: string
  readonly limiter?: string
  readonly lastMs?: number
  readonly rule?: string
}

export function readRoutes(app: FastifyInstance, engine: Engine): void {
  app.post<{ Body: Usage }>(
    '/v1/usage',
    {
      config: { scope: 'read' },
      schema: {
        summary: 'Units that a key has used lately',
        body: object(
          { key: KEY, limiter: LIMITER, lastMs: { type: 'number', exclusiveMinimum: 0 }, rule: TEXT },
          ['key'],
        ),
        response: answers(object({ usage: NUMBER }, ['usage'])),
      },
    },
    async ({ body: { key, limiter, lastMs, rule } }) => {
      const [, own] = limiterOf(engine.limiters, limiter)
      return { usage: await own.usage(key, lastMs, rule === undefined ? {} : { rule }) }
    },
  )
  app.get(
    '/v1/limiters',
    {
      config: { scope: 'read', orScope: 'decide' },
      schema: {
        summary: 'The limiters, the default one first, and their rules',
        response: answers(
          object(
            {
              limiters: {
                type: 'array',
                items: object({ name: TEXT, rules: { type: 'array', items: RULE } }, ['name', 'rules']),
              },
              idempotency: BOOLEAN,
              policies: object({ kind: TEXT, watchDelayMs: { anyOf: [NUMBER, { const: 'Infinity' }] } }),
            },
            ['limiters', 'idempotency'],
          ),
          REFUSED,
        ),
      },
    },
    async () => {
      const { limiters, records, policies } = engine
      const { kind, watchDelayMs } = policies?.store ?? {}
      return {
        limiters: [...limiters].map(([name, { rules }]) => ({
          name,
          rules: rules.map((rule) => ({ ...rule, limit: toWire(rule.limit) })),
        })),
        idempotency: records !== undefined,
        ...(policies && { policies: { kind, watchDelayMs: toWire(watchDelayMs!) } }),
      }
    },
  )
  app.post<{ Body: { limiter?: string } }>(
    '/v1/stats',
    {
      config: { scope: 'read' },
      schema: {
        summary: 'The counters of a limiter',
        body: object({ limiter: LIMITER }),
        response: answers(ANY_OBJECT),
      },
    },
    async ({ body }) => limiterOf(engine.limiters, body.limiter)[1].stats(),
  )
}
