// Requests to several limiters, decided together, all or nothing, for the service. Unlike in a group, a limiter may be
// asked for several keys, and each request has a cost and a limit of its own. Every limiter has one rule.
import type { Decision, RuleDecision } from '../core/decision.js'
import { MillraceError } from '../core/errors.js'
import type { OwnDecision } from '../engines/engine.js'
import type { InlineMember } from '../limiters/group-member.js'
import { InlineLimiter } from '../limiters/inline-limiter.js'
import { TOGETHER, type TogetherDecider, type TogetherDecision } from './joining.js'

export type { TogetherDecision }

/** A key of a limiter. No two requests of one call have the same. */
export interface TogetherRequest {
  readonly limiter: object
  readonly key: string
  /** 1 or more. */
  readonly cost: number
  readonly limit: number
}

interface Stored {
  [TOGETHER](limiters: readonly object[]): TogetherDecider
}

/** Lists of limiters whose deciders are kept: each is a script that Redis keeps. */
const MOST_DECIDERS = 256

/** Decides requests to several limiters together: all of them in this process, or all in one store. */
export class Together {
  readonly #members = new WeakMap<object, InlineMember<OwnDecision>>()
  readonly #ids = new WeakMap<object, number>()
  readonly #deciders = new Map<string, TogetherDecider>()
  #lastId = 0

  /**
   * Answers at once if the limiters decide on the calling thread. If a later one refuses there, the charges of those
   * before it are taken back.
   * @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` for limiters that can't decide together
   */
  decide(requests: readonly TogetherRequest[]): TogetherDecision | Promise<TogetherDecision> {
    const { limiter } = requests[0]!
    return isStored(limiter) ? this.#decideThere(limiter, requests) : this.#decideHere(requests)
  }

  #decideHere(requests: readonly TogetherRequest[]): TogetherDecision {
    const own = requests.map(({ limiter, key, cost, limit }) => {
      const member = this.#memberOf(limiter)
      return { member, request: member.request(key, cost, limit, false) }
    })
    const parts: Decision[] = []
    for (const { member, request } of own) {
      const part = member.check(request)
      parts.push(part)
      if (part.allowed) continue
      const refusing = parts.length - 1
      for (let i = refusing - 1; i >= 0; i--) own[i]!.member.undo(parts[i]!, own[i]!.request)
      const told = own.map((each, i) => (i === refusing ? part : each.member.peek(each.request)))
      return { allowed: false, source: undefined, parts: told }
    }
    return { allowed: true, source: undefined, parts }
  }

  #memberOf(limiter: object): InlineMember<OwnDecision> {
    let member = this.#members.get(limiter)
    if (member === undefined) {
      if (!(limiter instanceof InlineLimiter)) throw notTogether(limiter)
      member = limiter.toMember('limiter') as InlineMember<OwnDecision>
      this.#members.set(limiter, member)
    }
    return member
  }

  /** The order of the limiters makes no other script. */
  async #decideThere(first: Stored, requests: readonly TogetherRequest[]): Promise<TogetherDecision> {
    const ids = requests.map(({ limiter }) => this.#idOf(limiter))
    const order = ids.map((_, i) => i).sort((a, b) => ids[a]! - ids[b]! || a - b)
    const name = order.map((i) => ids[i]).join()
    let decider = this.#deciders.get(name)
    if (decider === undefined) decider = first[TOGETHER](order.map((i) => requests[i]!.limiter))
    else this.#deciders.delete(name)
    this.#deciders.set(name, decider) // as the latest one
    if (this.#deciders.size > MOST_DECIDERS) this.#deciders.delete(this.#deciders.keys().next().value!)
    const sorted = order.map((i) => requests[i]!)
    const { parts, ...decided } = await decider.decide(
      sorted.map(({ key }) => key),
      sorted.map(({ cost }) => cost),
      sorted.map(({ limit }) => limit),
    )
    const own: RuleDecision[] = []
    for (const [at, i] of order.entries()) own[i] = parts[at]!
    return { ...decided, parts: own }
  }

  #idOf(limiter: object): number {
    const known = this.#ids.get(limiter)
    if (known !== undefined) return known
    if (!isStored(limiter)) throw notTogether(limiter)
    this.#ids.set(limiter, ++this.#lastId)
    return this.#lastId
  }
}

const isStored = (limiter: object): limiter is object & Stored => TOGETHER in limiter

function notTogether(limiter: object): MillraceError {
  const expected = 'limiters that decide together: all in this process, or all on one Redis'
  return new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'limiter', limiter, expected)
}
