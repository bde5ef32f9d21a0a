import type { Decision } from '../core/decision.js'
import type { Problem } from './problem.js'
import type { Refusal } from './step.js'

/**
 * What a framework's own error handling is given with the option `asError`, for a request that does not pass: over its
 * limit (429), banned or denied (403), or undecided because of an error or an outage (503). The headers of its response
 * are set. Express, Fastify and Koa answer an error by its `status`, Hono by `getResponse()`.
 */
export class RateLimitError extends Error {
  override readonly name = 'RateLimitError'
  readonly status: number
  readonly statusCode: number
  /** That Koa may show the message to the client. */
  readonly expose = true
  /** The decision; undefined if none was made, or if a store did not answer. */
  readonly decision: Decision | undefined
  /** The problem document of RFC 9457; undefined for a `message` of the user. */
  readonly problem: Problem | undefined
  readonly #response: () => Response

  /**
   * @param refusal the answer of the policy
   * @param headers those of the response, where the framework would drop them
   */
  constructor(refusal: Refusal, headers: Iterable<readonly [string, string]> = []) {
    const { status, contentType, body, decision, problem } = refusal
    super(problem === undefined ? body : [problem.title, problem.detail].filter(Boolean).join('. '))
    this.status = status
    this.statusCode = status
    this.decision = decision
    this.problem = problem
    const own = Object.fromEntries(headers)
    this.#response = () => new Response(body, { status, headers: { ...own, 'Content-Type': contentType } })
  }

  /** The answer that the middleware would have given. */
  getResponse(): Response {
    return this.#response()
  }
}
