import type { Decision } from '../core/decision.js'
import { isUndecided } from '../core/decision-source.js'
import type { Refusals } from '../core/refusals.js'
import { Bans, type Judgement, type RefusedCall } from './bans.js'
import { type BlockState, blockOf } from './blocks.js'
import { isPromise, within } from './caller-promise.js'
import { Delays, type SlowCall } from './delays.js'
import { type Failures, outageError } from './failures.js'
import type { Framework } from './framework.js'
import type { AnyKey, AnyLimits, Decider, Limit, Limits } from './judging.js'
import type { CountOptions } from './key-counts.js'
import { NoPlaceDecision } from './no-place.js'
import { checkKeyTimeout, isEnforced, type RequestOptions } from './options.js'
import type { Answers } from './problem.js'
import { GONE, type Refusal, type Step } from './step.js'
import { keepReading } from './waiting-connection.js'

/** The options that say what follows from decisions. Those of a group have neither `ban` nor `delay`. */
export interface ConcludingOptions<Request, Response>
  extends RequestOptions<Request, Response>,
    CountOptions {
  readonly ban?: unknown
  readonly delay?: unknown
}

/** A decided request. */
interface Call<Request, Response> extends SlowCall {
  readonly limit: Limit<Response>
  readonly request: Request
  readonly response: Response
  /** Whether an earlier limiter has written headers. */
  readonly follows: boolean
  readonly cost: number
}

type Refused<Request, Response> = Call<Request, Response> & RefusedCall

/** Does what follows from decisions: sets headers, refuses, bans, delays and counts. */
export class Conclusions<Request, Response> {
  readonly #framework: Framework<Request, Response>
  readonly #options: ConcludingOptions<Request, Response>
  readonly #answers: Answers<Request>
  readonly #failures: Failures<Request>
  readonly #refusals: Refusals
  readonly #bans: Bans | undefined
  readonly #delays: Delays | undefined
  readonly #isShadow: boolean
  readonly #exposesHeaders: boolean
  readonly #timeoutMs: number

  /** @throws MillraceError for an option that is wrong */
  constructor(
    options: ConcludingOptions<Request, Response>,
    framework: Framework<Request, Response>,
    limits: Limits<Response>,
    answers: Answers<Request>,
    failures: Failures<Request>,
    refusals: Refusals,
  ) {
    this.#framework = framework
    this.#options = options
    this.#answers = answers
    this.#failures = failures
    this.#refusals = refusals
    this.#bans = Bans.of(options, limits)
    this.#delays = Delays.of(options, limits)
    this.#isShadow = !isEnforced(options)
    this.#exposesHeaders = options.exposeHeaders === true
    this.#timeoutMs = checkKeyTimeout(options.keyTimeoutMs)
  }

  /** Forgets what a key has done that is counted in this process. */
  forget(key: string): void {
    this.#bans?.forget(key)
    this.#delays?.forget(key)
  }

  async close(): Promise<void> {
    await Promise.all([this.#bans?.close(), this.#delays?.close()])
  }

  /** What follows from a decision: the headers of the response, and the answer or the wait. */
  conclude(
    limit: Limit<Response>,
    request: Request,
    response: Response,
    key: AnyKey,
    cost: number,
    own: { limit?: AnyLimits | undefined } | undefined,
    decision: Decision,
  ): Step | Promise<Step> {
    const framework = this.#framework
    const follows = framework.kept(request) !== undefined
    framework.keep(request, response, decision)
    if (isUndecided(decision.source)) return this.#outage(limit, request, response, decision)
    if (!decision.allowed) {
      const { limiter } = limit
      const peek = () => (own === undefined ? limiter.peek(key, cost) : limiter.peek(key, cost, own))
      return this.#refuse({
        limit,
        request,
        response,
        follows,
        limiter: limiter as SlowCall['limiter'],
        key: limit.toldKey(key, decision) as string,
        cost,
        decision,
        peek,
      })
    }
    if (this.#delays !== undefined && !this.#isShadow) {
      const limiter = limit.limiter as SlowCall['limiter']
      const call = { limit, request, response, follows, limiter, key: key as string, cost, decision }
      return this.#admitSlowly(call, this.#delays)
    }
    limit.counts.decisions.count(decision, 'decided')
    if (!this.#isShadow) this.#show(limit, response, decision, follows)
    if (this.#options.countIf !== undefined) this.#countLater(limit.limiter, request, response, decision)
    return undefined
  }

  #show(limit: Limit<Response>, response: Response, decision: Decision, follows: boolean): void {
    limit.headers.write(response, decision, follows)
    if (this.#exposesHeaders) limit.headers.expose(response)
  }

  /**
   * The store of the limiter does not answer. The decision says nothing about the client: no header shows its
   * figures, and a refusal is no request over the limit. It is a failure, as if the limiter had thrown.
   */
  #outage(limit: Limit<Response>, request: Request, response: Response, decision: Decision): Step {
    const answer = decision.allowed ? 'pass' : this.#failures.report(outageError(decision), request)
    limit.counts.decisions.count(decision, answer === 'pass' || this.#isShadow ? 'passed' : 'decided')
    if (decision.allowed) return undefined
    if (this.#framework.hasGone(request)) return GONE
    if (answer === 'pass' || this.#isShadow) return undefined
    limit.headers.writeRetryAfter(response, decision)
    if (this.#exposesHeaders) limit.headers.expose(response)
    return this.#answers.outage(this.#framework.requestOf(request), decision)
  }

  /** A request over its limit. */
  #refuse(call: Refused<Request, Response>): Step | Promise<Step> {
    this.tell(call.request, call.decision, call.key)
    if (this.#isShadow) {
      call.limit.counts.decisions.count(call.decision, 'passed')
      return undefined
    }
    if (this.#delays !== undefined) return this.#slowDown(call, this.#delays)
    const judged = this.#judge(call)
    return judged instanceof Promise
      ? judged.then((later) => this.#refusal(call, later))
      : this.#refusal(call, judged)
  }

  /** An admitted request with the option `delay`. If there is no place to wait, it gives its charge back. */
  #admitSlowly(call: Call<Request, Response>, delays: Delays): Step | Promise<Step> {
    const { limit, limiter, request, response, key, decision, follows } = call
    const ms = delays.afterAdmission(call)
    if (ms > 0 && !delays.hasPlace(key)) {
      const report = (error: unknown) => this.#failures.report(error, request)
      const refunded: unknown = limiter.refund(decision)
      if (isPromise(refunded)) Promise.resolve(refunded).catch(report)
      return this.#refusal(call, { isBanned: false, decision: new NoPlaceDecision(decision, ms) })
    }
    if (ms > 0) limit.counts.countDelayed(decision, 'decided')
    else limit.counts.decisions.count(decision)
    this.#show(limit, response, decision, follows)
    if (this.#options.countIf !== undefined) this.#countLater(limiter, request, response, decision)
    return this.#delay(call, delays, ms)
  }

  /**
   * Lets a request wait that is over its limit. A blocked key is refused, and so is what no time would admit.
   * There may be no place to wait.
   */
  #slowDown(call: Refused<Request, Response>, delays: Delays): Step | Promise<Step> {
    if (call.decision.retryAfterMs === Number.POSITIVE_INFINITY)
      return this.#refusal(call, { isBanned: false, decision: call.decision })
    const go = (state: BlockState): Step | Promise<Step> => {
      const { limit, request, response, decision, follows, key, cost } = call
      if (typeof state === 'object' && !state.allowed) return this.#outage(limit, request, response, state)
      if (state === true || !delays.hasPlace(key))
        return this.#refusal(call, { isBanned: false, decision: call.decision })
      limit.counts.countDelayed(decision, 'delayed')
      this.#show(limit, response, decision, follows)
      return this.#delay(call, delays, delays.afterRefusal(call, cost))
    }
    const state = blockOf(call.limiter, call.key)
    return state instanceof Promise ? state.then(go) : go(state)
  }

  // The decision stands if something fails after it: the error is reported, and the request is refused.

  /** Calls `onLimited`. */
  tell(request: Request, decision: Decision, key: string): void {
    try {
      const told: unknown = this.#options.onLimited?.(request, decision, key)
      if (isPromise(told)) Promise.resolve(told).catch((error) => this.#failures.report(error, request))
    } catch (error) {
      this.#failures.report(error, request)
    }
  }

  /** Whether the key is banned, and the decision to tell. */
  #judge(call: Refused<Request, Response>): Judgement | Promise<Judgement> {
    const fail = (error: unknown): Judgement => {
      this.#failures.report(error, call.request)
      return { isBanned: false, decision: call.decision }
    }
    if (this.#bans === undefined) return { isBanned: false, decision: call.decision }
    try {
      const judged = this.#bans.judge(call)
      return judged instanceof Promise ? judged.catch(fail) : judged
    } catch (error) {
      return fail(error)
    }
  }

  #refusal(call: Call<Request, Response>, { isBanned, decision }: Judgement): Refusal {
    const { limit, request, response, follows } = call
    this.#refusals.note(call.key)
    // A refusal that begins a ban is one by the limit, though its answer is that of the ban.
    limit.counts.decisions.count(call.decision.allowed ? decision : call.decision, 'decided', isBanned)
    this.#framework.keep(request, response, decision)
    this.#show(limit, response, decision, follows)
    limit.headers.writeRetryAfter(response, decision)
    const raw = this.#framework.requestOf(request)
    const violated = limit.violatedBy?.(decision)
    try {
      return this.#answers.refused(request, raw, decision, isBanned, violated)
    } catch (error) {
      this.#failures.report(error, request)
      return this.#answers.standard(raw, decision, isBanned, violated)
    }
  }

  /** Waits, and gives up when the connection closes. */
  #delay(
    { request, response, key }: Call<Request, Response>,
    delays: Delays,
    ms: number,
  ): Step | Promise<Step> {
    if (ms === 0) return undefined
    const connection = this.#framework.connectionOf(request, response)
    const stop = connection && keepReading(connection)
    const waited = delays.wait(key, ms, (gone) => this.#framework.onEnd(request, response, gone))
    return waited.then((isGone) => {
      stop?.()
      return isGone ? GONE : undefined
    })
  }

  #countLater(limiter: Decider, request: Request, response: Response, decision: Decision): void {
    const refund = (counts: boolean) => (counts ? undefined : limiter.refund(decision))
    const report = (error: unknown) => this.#failures.report(error, request)
    this.#framework.onEnd(request, response, (isSent) => {
      if (!isSent) return
      try {
        const counts = within<boolean>(this.#timeoutMs, this.#options.countIf!(response), 'countIf(response)')
        const done: unknown = counts instanceof Promise ? counts.then(refund) : refund(counts)
        if (isPromise(done)) Promise.resolve(done).catch(report)
      } catch (error) {
        report(error)
      }
    })
  }
}
