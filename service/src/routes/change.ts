// Changes of keys: refunds, commits, penalties and blocks.
import type { FastifyInstance } from 'fastify'
import type { Engine } from '../engine.js'
import { answers, BOOLEAN, COST, KEY, LIMITER, NUMBER, object, REFUSED_BODY, TOKEN } from '../http/schemas.js'
import { limiterOf } from '../limiters.js'

interface Key {
  readonly key: string
  readonly limiter?: string
}
type Cost = Key & { readonly cost: number }
type Token = { readonly token?: string; readonly reservation?: string }

const TOKENS = { token: TOKEN, reservation: TOKEN }
const KEYS = { key: KEY, limiter: LIMITER }

export function changeRoutes(app: FastifyInstance, engine: Engine): void {
  const { charges } = engine
  const find = ({ limiter }: Key) => limiterOf(engine.limiters, limiter)[1]
  const decide = { scope: 'decide', isIdempotent: true } as const
  const change = { scope: 'change' } as const

  app.post<{ Body: Token & Cost }>(
    '/v1/refund',
    {
      config: decide,
      schema: {
        summary: 'Gives back the charge of a decision, or units of a key',
        body: {
          type: 'object',
          if: { anyOf: [{ required: ['token'] }, { required: ['reservation'] }] },
          // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
          then: { ...object(TOKENS), maxProperties: 1 },
          else: object({ ...KEYS, cost: COST }, ['key', 'cost']),
        },
        response: answers(object({ refunded: NUMBER }, ['refunded']), [...REFUSED_BODY, 409, 422]),
      },
    },
    async ({ body }) => {
      const { token, reservation } = body
      if (token !== undefined) return { refunded: await charges.refund(token, 'token') }
      if (reservation !== undefined) return { refunded: await charges.refund(reservation, 'reservation') }
      return { refunded: await find(body).refund(body.key, body.cost) }
    },
  )
  app.post<{ Body: Token & { readonly cost: number } }>(
    '/v1/commit',
    {
      config: decide,
      schema: {
        summary: 'Settles a reservation with the cost that was used: 0 gives all back',
        body: { ...object({ ...TOKENS, cost: COST }, ['cost']), minProperties: 2, maxProperties: 2 },
        response: answers(object({ committed: NUMBER }, ['committed']), [...REFUSED_BODY, 409, 422]),
      },
    },
    async ({ body: { token, reservation, cost } }) => ({
      committed: await charges.commit(
        (token ?? reservation)!,
        token === undefined ? 'reservation' : 'token',
        cost,
      ),
    }),
  )
  app.post<{ Body: Cost }>(
    '/v1/penalize',
    {
      config: decide,
      schema: {
        summary: 'Charges without a decision, also beyond the limit',
        body: object({ ...KEYS, cost: COST }, ['key', 'cost']),
        response: answers(object({ penalized: BOOLEAN }, ['penalized']), [...REFUSED_BODY, 409, 422]),
      },
    },
    async ({ body }) => ({ penalized: await find(body).penalize(body.key, body.cost) }),
  )
  app.post<{ Body: Key & { readonly ms: number | 'forever' } }>(
    '/v1/block',
    {
      config: change,
      schema: {
        summary: 'Refuses a key for a time',
        body: object(
          { ...KEYS, ms: { anyOf: [{ type: 'number', exclusiveMinimum: 0 }, { const: 'forever' }] } },
          ['key', 'ms'],
        ),
        response: answers(object({ blocked: BOOLEAN }, ['blocked'])),
      },
    },
    async ({ body }) => {
      const ms = body.ms === 'forever' ? Number.POSITIVE_INFINITY : body.ms
      return { blocked: await find(body).block(body.key, ms) }
    },
  )
  app.post<{ Body: Key }>(
    '/v1/unblock',
    {
      config: change,
      schema: {
        summary: 'Ends the block of a key',
        body: object(KEYS, ['key']),
        response: answers(object({ unblocked: BOOLEAN }, ['unblocked'])),
      },
    },
    async ({ body }) => ({ unblocked: await find(body).unblock(body.key) }),
  )
  app.post<{ Body: Key }>(
    '/v1/clear',
    {
      config: change,
      schema: {
        summary: 'Forgets what a key has used, and ends its block',
        body: object(KEYS, ['key']),
        response: answers(object({})),
      },
    },
    async ({ body }) => {
      await find(body).clear(body.key)
      return {}
    },
  )
}
