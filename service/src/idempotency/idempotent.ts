// Lets a request with an `Idempotency-Key` be sent again: the answer that was kept is sent in place of another charge.
import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { problem, ServiceError, sendProblem } from '../http/problem.js'
import type { Records } from './records.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The record of this request, to be kept with its answer. */
    record: { readonly id: string; readonly request: string } | undefined
  }
}

const LONGEST_KEY = 256
/** Decisions and changes. Any other answer has done nothing, or nobody knows: its request is judged again. */
const KEPT = [200, 429]

/**
 * @param records undefined: the store can't keep any, and the header makes no difference
 * @param isStrict whether a request fails when its record can't be kept; else it may be charged twice
 */
export function keepAnswers(app: FastifyInstance, records: Records | undefined, isStrict: boolean): void {
  app.decorateRequest('record', undefined)
  if (records === undefined) return
  app.addHook('preHandler', (request, reply, done) => {
    const key = request.headers['idempotency-key']
    if (key === undefined || !request.routeOptions.config.isIdempotent) return done()
    replayOrBegin(key, request, reply).then(() => reply.sent || done(), done)
  })

  async function replayOrBegin(key: string | string[], request: FastifyRequest, reply: FastifyReply) {
    if (typeof key !== 'string' || key.length === 0 || key.length > LONGEST_KEY)
      throw new ServiceError(
        400,
        'ERR_MILLRACE_INVALID_OPTION',
        `Idempotency-Key: expected 1 to ${LONGEST_KEY} characters`,
        {
          field: 'Idempotency-Key',
        },
      )
    await begin(records!, isStrict, request, reply, key)
  }

  app.addHook('onSend', (request, reply, payload, done) => {
    const { record } = request
    if (record === undefined) return done(null, payload)
    request.record = undefined
    keep(record, request, reply, payload).then(() => done(null, payload), done)
  })

  async function keep(
    { id, request: fingerprint }: NonNullable<FastifyRequest['record']>,
    request: FastifyRequest,
    reply: FastifyReply,
    payload: unknown,
  ): Promise<void> {
    try {
      if (!KEPT.includes(reply.statusCode) || typeof payload !== 'string') await records!.forget(id)
      else {
        const type = String(reply.getHeader('content-type'))
        await records!.keep(id, {
          request: fingerprint,
          answer: { status: reply.statusCode, type, body: payload, headers: headersOf(reply) },
        })
      }
    } catch (error) {
      request.log.warn({ reqId: request.id, error: (error as Error).message }, 'an answer could not be kept')
    }
  }
}

async function begin(
  records: Records,
  isStrict: boolean,
  request: FastifyRequest,
  reply: FastifyReply,
  key: string,
): Promise<void> {
  const { url } = request.routeOptions
  const id = digest(request.caller.id, url!, key)
  const fingerprint = digest(request.url, JSON.stringify(request.body))
  const kept = await records.begin(id, fingerprint).catch((error: Error) => {
    request.log.warn({ error: error.message }, 'the store of kept answers does not answer')
    if (isStrict)
      throw new ServiceError(503, 'ERR_MILLRACE_OUTAGE', 'The store of kept answers does not answer.', {
        mayBeCharged: false,
      })
    return null
  })
  if (kept === null) return
  if (kept === undefined) request.record = { id, request: fingerprint }
  else if (kept.request !== fingerprint)
    sendProblem(
      reply,
      problem(422, 'ERR_MILLRACE_IDEMPOTENCY_MISMATCH', 'This Idempotency-Key had another body.'),
    )
  else if (kept.answer === undefined) {
    const pending = problem(
      409,
      'ERR_MILLRACE_IDEMPOTENCY_PENDING',
      'A request with this Idempotency-Key is under way.',
    )
    sendProblem(reply.header('retry-after', 1), pending)
  } else {
    const { status, type, body, headers = {} } = kept.answer
    const own = { ...headers, 'content-type': type, 'idempotency-replayed': 'true' }
    reply.code(status).headers(own).send(body)
  }
}

/** The headers that a decision has set. */
const headersOf = (reply: FastifyReply): Record<string, string> =>
  Object.fromEntries(
    Object.entries(reply.getHeaders()).flatMap(([name, value]) =>
      name === 'retry-after' || name.startsWith('ratelimit') ? [[name, String(value)]] : [],
    ),
  )

const digest = (...parts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
