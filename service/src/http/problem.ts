// Errors as problem documents (RFC 9457).
import type { FastifyError, FastifyReply } from 'fastify'
import { type Decision, MillraceError } from 'millrace'
import { mayBeCharged } from 'millrace/internal'
import { wireDecision } from './wire.js'

/** A problem document. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: string
  /** The field of the request at fault, such as `checks[3].key`. */
  readonly field?: string
  /** What the field should be. */
  readonly expected?: string
  /** Whether the call may have charged its key all the same. */
  readonly mayBeCharged?: boolean
  /** The decision of a 429. */
  readonly decision?: object
}

/** An error of the service itself, with the status of its answer. */
export class ServiceError extends Error {
  readonly problem: Problem

  constructor(status: number, code: string, detail: string, more: Partial<Problem> = {}) {
    super(detail)
    this.problem = problem(status, code, detail, more)
  }
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  412: 'Precondition Failed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  421: 'Misdirected Request',
  422: 'Unprocessable Content',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
}

export function problem(status: number, code: string, detail: string, more: Partial<Problem> = {}): Problem {
  const type = `https://millrace.dev/errors/${code}`
  return { type, title: TITLES[status] ?? 'Error', status, detail, code, ...more }
}

const STATUSES: Readonly<Record<string, number>> = {
  ERR_MILLRACE_SETTLED: 409,
  ERR_MILLRACE_NOT_RESERVED: 409,
  ERR_MILLRACE_FOREIGN_DECISION: 409,
  ERR_MILLRACE_CONFIG_CONFLICT: 412,
  ERR_MILLRACE_POLICY_TOO_LARGE: 400,
  ERR_MILLRACE_NEVER_ADMITTED: 400,
  ERR_MILLRACE_OUTAGE: 503,
  ERR_MILLRACE_CONFIG_STORE: 503,
  ERR_MILLRACE_OVERLOADED: 503,
  ERR_MILLRACE_CLOSED: 503,
  ERR_MILLRACE_ABORTED: 503,
  ERR_MILLRACE_WORKER_LOST: 503,
  ERR_MILLRACE_NO_THREADS: 503,
}

/** The codes of the errors of Fastify that a request can cause. */
const FROM_FASTIFY: Readonly<Record<string, readonly [status: number, code: string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: [413, 'ERR_MILLRACE_TOO_LARGE'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [415, 'ERR_MILLRACE_MEDIA_TYPE'],
  FST_ERR_CTP_EMPTY_JSON_BODY: [400, 'ERR_MILLRACE_INVALID_BODY'],
  FST_ERR_CTP_INVALID_JSON_BODY: [400, 'ERR_MILLRACE_INVALID_BODY'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [400, 'ERR_MILLRACE_INVALID_BODY'],
}

const CODES_OF_FIELDS: Readonly<Record<string, string>> = {
  key: 'ERR_MILLRACE_INVALID_KEY',
  cost: 'ERR_MILLRACE_INVALID_COST',
  ms: 'ERR_MILLRACE_INVALID_DURATION',
  lastMs: 'ERR_MILLRACE_INVALID_DURATION',
}

/** The problem of any error. */
export function problemOf(error: unknown): Problem {
  if (error instanceof ServiceError) return error.problem
  if (error instanceof MillraceError) return ofMillrace(error)
  const { validation, code, statusCode } = error as FastifyError
  if (validation !== undefined) return ofValidation(error as FastifyError)
  const known = FROM_FASTIFY[code]
  if (known !== undefined) return problem(...known, (error as Error).message)
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return problem(statusCode, 'ERR_MILLRACE_INVALID_BODY', (error as Error).message)
  return problem(500, 'ERR_MILLRACE_INTERNAL', 'The service failed. Its log says why.')
}

/** What callers read of an error of a store: its own message may have an address, which is the log's. */
const DETAILS: Readonly<Record<string, string>> = {
  ERR_MILLRACE_OUTAGE: 'The store of counts does not answer.',
  ERR_MILLRACE_CONFIG_STORE: 'The store of policies does not answer.',
}
/** The fields of requests that the library calls otherwise. */
const FIELDS: Readonly<Record<string, string>> = { actualCost: 'cost' }

function ofMillrace(error: MillraceError): Problem {
  const { code, message, option, expected, mayBeCharged } = error
  const status = STATUSES[code] ?? (code.startsWith('ERR_MILLRACE_INVALID_') ? 400 : 500)
  const charged = mayBeCharged === undefined ? {} : { mayBeCharged }
  const detail = DETAILS[code]
  if (detail !== undefined) return problem(status, code, detail, charged)
  const field = FIELDS[option] ?? option
  const named = message.startsWith(`${option}: `) ? field + message.slice(option.length) : message
  return problem(status, code, named, { field, expected, ...charged })
}

function ofValidation({ validation, validationContext }: FastifyError): Problem {
  const [first] = validation!
  const { missingProperty, additionalProperty } = first!.params as Record<string, string | undefined>
  const path = first!.instancePath
    .replace(/\/(\d+)/g, '[$1]')
    .replaceAll('/', '.')
    .replace(/^\./, '')
  const last = missingProperty ?? additionalProperty
  const field = [path, last].filter(Boolean).join('.') || (validationContext ?? 'body')
  const name = field.slice(field.lastIndexOf('.') + 1)
  const code = CODES_OF_FIELDS[name] ?? 'ERR_MILLRACE_INVALID_OPTION'
  const expected = additionalProperty === undefined ? first!.message! : 'no such field'
  return problem(400, code, `${field}: ${expected}`, { field, expected })
}

/** The problem of a decision that nobody has made: a store is away. It is never a 429. */
export const undecided = (decision: Decision, method: 'check' | 'peek'): Problem =>
  problem(503, 'ERR_MILLRACE_UNDECIDED', 'The store does not answer, so nobody has decided.', {
    decision: wireDecision(decision),
    // Without a policy nothing has been sent to the store of counts.
    mayBeCharged: method === 'check' && decision.source !== 'config' && mayBeCharged(decision),
  })

/** Whether a store has left a request undecided, and the outage refuses it. */
export const isUndecided = ({ allowed, source }: Decision): boolean =>
  !allowed && (source === 'outage' || source === 'config')

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply.code(problem.status).type('application/problem+json').send(problem)
}
