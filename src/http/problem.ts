/** The answers to requests that do not pass. A caller leaves the body out of the answer to `HEAD`. */
import type { Decision } from '../core/decision.js'
import { secondsOf } from '../core/decision-fields.js'
import { MillraceError } from '../core/errors.js'
import { type BodyForm, preferredForm } from './accept.js'
import type { HttpRequest } from './framework.js'

/** An answer. Nothing in it comes from the request, unless the option `message` puts it there. */
export interface Answer {
  readonly status: number
  /** The value of `Content-Type`. */
  readonly contentType: string
  readonly body: string
  /** What the body says, in any form; undefined for a `message` of the user. */
  readonly problem?: Problem | undefined
}

/** An answer to a request that a limiter refused. */
export interface RefusalAnswer extends Answer {
  readonly decision: Decision
}

export interface AnswerOptions<Request> {
  /** The status of a refusal, unless the key is banned. */
  readonly statusCode?: number | undefined
  /** The body of a refusal. */
  readonly message?: string | object | ((request: Request, decision: Decision) => string | object) | undefined
}

/** The members of a problem document (RFC 9457). */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail?: string
  readonly 'violated-policies'?: readonly string[]
}

type Body = Pick<Answer, 'contentType' | 'body'>

/** The types of section 5 of draft-ietf-httpapi-ratelimit-headers-11, with the titles of section 10.2. */
const TYPES = 'https://iana.org/assignments/http-problem-types'
const QUOTA_EXCEEDED = { type: `${TYPES}#quota-exceeded`, title: 'Quota Exceeded' }
const ABNORMAL_USAGE = { type: `${TYPES}#abnormal-usage-detected`, title: 'Abnormal Usage Detected' }
const REDUCED_CAPACITY = {
  type: `${TYPES}#temporary-reduced-capacity`,
  title: 'Temporary Reduced Capacity',
  status: 503,
  detail: 'The server can not take this request at present.',
}
/** `about:blank` says no more than the status. */
const FORBIDDEN = { type: 'about:blank', title: 'Forbidden', status: 403 }

/** Makes the answers to requests that do not pass, in the form that the client prefers. */
export class Answers<Request> {
  readonly #status: number
  readonly #message: AnswerOptions<Request>['message']
  /** The body of a message that is no function. */
  readonly #fixed: Body | undefined

  /** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` for a message without JSON */
  constructor({ statusCode = 429, message }: AnswerOptions<Request>) {
    this.#status = statusCode
    this.#message = message
    if (message !== undefined && typeof message !== 'function') this.#fixed = bodyOf(message, 'message')
  }

  /**
   * The answer to a refusal: 429, or 403 for a key that is banned.
   * @param raw the request whose header `Accept` is read
   * @param violated the names of the rules that refused
   * @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` if the function `message` returns no string or object.
   * What it throws is thrown
   */
  refused(
    request: Request,
    raw: HttpRequest,
    decision: Decision,
    isBanned: boolean,
    violated?: readonly string[],
  ): RefusalAnswer {
    const status = isBanned ? 403 : this.#status
    const message = this.#message
    const own =
      typeof message === 'function'
        ? bodyOf(message(request, decision), 'message(request, decision)')
        : this.#fixed
    return own === undefined ? this.standard(raw, decision, isBanned, violated) : { status, ...own, decision }
  }

  /** The answer without the option `message`: a problem document. */
  standard(
    raw: HttpRequest,
    decision: Decision,
    isBanned: boolean,
    violated = refusing(decision),
  ): RefusalAnswer {
    const status = isBanned ? 403 : this.#status
    return { ...answerOf(problemOf(decision, status, violated, isBanned), raw), decision }
  }

  /** The answer to an address that is denied: 403. */
  denied(raw: HttpRequest): Answer {
    return answerOf(FORBIDDEN, raw)
  }

  /** The answer if no decision could be made: 503. */
  unavailable(raw: HttpRequest): Answer {
    return answerOf(REDUCED_CAPACITY, raw)
  }

  /** The answer to a refusal because the store of the limiter does not answer: 503. */
  outage(raw: HttpRequest, decision: Decision): Answer {
    const detail = `The store of the rate limiter does not answer. ${detailOf(decision)}`
    return answerOf({ ...REDUCED_CAPACITY, detail }, raw)
  }
}

function answerOf(problem: Problem, raw: HttpRequest): Answer {
  const { contentType, body } = write(formFor(raw), problem)
  return { status: problem.status, contentType, body, problem }
}

const formFor = ({ headers }: HttpRequest): BodyForm => preferredForm(headers.accept)

const refusing = ({ rules }: Decision): readonly string[] =>
  rules.filter(({ allowed }) => !allowed).map(({ rule }) => rule)

function problemOf(
  decision: Decision,
  status: number,
  violated: readonly string[],
  isBanned: boolean,
): Problem {
  const { type, title } = isBanned ? ABNORMAL_USAGE : QUOTA_EXCEEDED
  return { type, title, status, detail: detailOf(decision), 'violated-policies': violated }
}

function detailOf({ retryAfterMs }: Decision): string {
  if (retryAfterMs === Number.POSITIVE_INFINITY) return 'This request is refused however late it is repeated.'
  const seconds = secondsOf(retryAfterMs)
  return `Retry after ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`
}

/** The body of a user's message: text, or JSON. @throws MillraceError */
function bodyOf(message: unknown, option: string): Body {
  if (typeof message === 'string') return { contentType: 'text/plain; charset=utf-8', body: message }
  // An async function is no message. The error thrown below says so; how its promise ends adds nothing.
  if (message instanceof Promise) message.catch(() => {})
  const isObject = typeof message === 'object' && message !== null && !(message instanceof Promise)
  // A method toJSON may return undefined, which has no JSON.
  const json = isObject ? (JSON.stringify(message) as string | undefined) : undefined
  if (json !== undefined) return { contentType: 'application/json', body: json }
  throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, message, 'a string, or an object with JSON')
}

/** Text and HTML have no names of rules: all that they contain is written here. */
function write(form: BodyForm, problem: Problem): Body {
  const { title, status, detail } = problem
  switch (form) {
    case 'problem':
      return { contentType: 'application/problem+json', body: JSON.stringify(problem) }
    case 'text': {
      const text = detail === undefined ? title : `${title}. ${detail}`
      return { contentType: 'text/plain; charset=utf-8', body: `${text}\n` }
    }
    case 'html': {
      const head = `<meta charset="utf-8"><title>${status} ${title}</title>`
      const content = `<h1>${title}</h1>${detail === undefined ? '' : `<p>${detail}</p>`}`
      const body = `<!doctype html>\n<html lang="en"><head>${head}</head><body>${content}</body></html>\n`
      return { contentType: 'text/html; charset=utf-8', body }
    }
  }
}
