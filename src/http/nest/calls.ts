import type { ExecutionContext } from '@nestjs/common'
import { invalid } from '../../core/errors.js'
import { isPromise } from '../caller-promise.js'
import type { Limit } from '../judging.js'
import { answeredBy } from '../node-framework.js'
import type { Policy } from '../policy.js'
import { GONE, type Step } from '../step.js'
import { exceptionFor } from './exception.js'
import type { Call, NestRequest, NestResponse } from './framework.js'
import type { ContextOptions } from './options.js'
import { transportExceptionFor } from './transport-exception.js'

/** Decides the calls of handlers, for guards. */
export class Calls {
  readonly #policy: Policy<Call, Call>
  readonly #options: ContextOptions<never>

  constructor(policy: Policy<Call, Call>, options: ContextOptions<never>) {
    this.#policy = policy
    this.#options = options
  }

  /**
   * Decides a call.
   * @param limit what the call is limited by, if its handler has rules of its own
   * @returns true if it passes, or a promise of it. If `handler` has answered the request, or its connection has
   * closed, the promise stays pending: nothing is left to do for it
   * @throws {RateLimitException} if it does not pass, or what `handler` throws. The promise rejects with the same
   */
  admit(context: ExecutionContext, limit?: Limit<Call>): boolean | Promise<boolean> {
    let call: Call | undefined
    try {
      call = this.#callOf(context)
    } catch (error) {
      const unknown = { request: {}, response: undefined, context, identity: {} }
      return this.#finish(this.#policy.fail(error, unknown), unknown)
    }
    if (call === undefined) return true
    const policy = this.#policy
    const step = limit === undefined ? policy.admit(call, call) : policy.admitBy(limit, call, call)
    if (step === undefined) return true
    return step instanceof Promise
      ? step.then((later) => this.#finish(later, call))
      : this.#finish(step, call)
  }

  /** The request and response of a call; undefined if it is not limited. */
  #callOf(context: ExecutionContext): Call | undefined {
    const request: NestRequest = context.getArgByIndex(0)
    // Nest calls a context 'http' by default, also one of a transport that it does not know.
    if (context.getType() === 'http' && isHttp(request)) {
      const response: NestResponse = context.getArgByIndex(1)
      const identity = answeredBy(request.raw ?? request, response?.raw ?? response)
      return { request, response, context, identity }
    }
    const found = this.#options.getRequestResponse?.(context) ?? {}
    if (isPromise(found)) {
      Promise.resolve(found).catch(() => {}) // the error below says enough
      throw invalid('getRequestResponse(context)', found, 'an object with req, and no promise')
    }
    const { req, res } = found as { req?: NestRequest; res?: NestResponse }
    if (typeof req !== 'object' || req === null) return undefined
    // A request of GraphQL may call several handlers, with arguments of their own.
    return { request: req, response: res ?? undefined, context, identity: context.getArgs() }
  }

  #finish(step: Step, { response, context }: Call): boolean | Promise<boolean> {
    if (step === undefined) return true
    if (step === GONE) return pending()
    const { handler } = this.#options
    if (handler !== undefined && step.decision !== undefined) {
      const handled = handler(context, step.decision as never)
      return handled instanceof Promise ? handled.then(pending) : pending()
    }
    throw context.getType() === 'http'
      ? exceptionFor(step, response)
      : transportExceptionFor(step, context.getType())
  }
}

/** A request of Express or Fastify has headers. */
const isHttp = (request: NestRequest): boolean => (request?.raw ?? request)?.headers !== undefined

/** For Nest, what `next` is that is never called. A new promise each time: one for all would keep all requests. */
const pending = (): Promise<boolean> => new Promise(() => {})
