import { HttpException } from '@nestjs/common'
import type { Decision } from '../../core/decision.js'
import { send } from '../node-framework.js'
import type { Refusal } from '../step.js'
import type { NestResponse } from './framework.js'

/**
 * Is thrown for a request that does not pass: over its limit (429), banned or denied (403), or undecided
 * because of an error or an outage (503). The headers of its response are set. `getResponse()` is the problem document, or
 * the option `message`.
 */
export class RateLimitException extends HttpException {
  /** The decision; undefined if none was made, or if a store did not answer. */
  readonly decision: Decision | undefined

  /**
   * @internal
   * @param refusal the answer of the policy
   */
  constructor(refusal: Refusal) {
    const { status, problem, decision } = refusal
    super(problem === undefined ? messageOf(refusal) : { ...problem }, status)
    this.decision = decision
    if (problem !== undefined) {
      const { title, detail } = problem
      this.message = detail === undefined ? title : `${title}. ${detail}`
    }
  }
}

/** The option `message`, which the policy has written: an object, or text in the form of Nest's exceptions. */
const messageOf = ({ status, contentType, body }: Refusal): Record<string, unknown> =>
  contentType === 'application/json' ? JSON.parse(body) : { statusCode: status, message: body }

/**
 * Makes an exception for an HTTP response. If no filter of the user sends something else, the client gets the
 * policy's answer in the form that it prefers: text, HTML or a problem document. Nest itself would send
 * `getResponse()` as `application/json`, by `json` of Express or `send` of Fastify, so those are replaced for
 * this one response.
 */
export function exceptionFor(refusal: Refusal, response: NestResponse): RateLimitException {
  const exception = new RateLimitException(refusal)
  const answer = exception.getResponse()
  if (response?.raw !== undefined) {
    const { send } = response
    response.send = (payload: unknown) => {
      if (payload !== answer) return send.call(response, payload)
      return send.call(response.header('Content-Type', refusal.contentType), refusal.body)
    }
  } else if (typeof response?.json === 'function') {
    const { json } = response
    response.json = (payload: unknown) => {
      if (payload !== answer) return json.call(response, payload)
      send(response, refusal)
      return response
    }
  }
  return exception
}
