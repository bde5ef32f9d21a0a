/**
 * The calls to one host, and when each of them counts.
 *
 * **Why a charge at sending is not enough.** A server counts a request when it arrives, some time between its
 * sending and its answer. Calls of two windows of the client, the first of them late, may arrive in one window
 * of the server. So a strict call counts from its sending until one window *after its answer*:
 *
 * 1. It is charged before it is sent.
 * 2. While it is on its way, its charge is renewed before it leaves the window.
 * 3. When its answer or its failure comes, it is charged again, and the earlier charge is given back.
 *
 * **Why that is enough.** Let the server's window have the length of the client's, W, and let more than the
 * limit arrive in one such window. Take the call j among these that the client admitted last, at d(j). Each
 * other one, i, was admitted before, and counts at least until W after its answer, which came after its arrival
 * r(i). Both arrived within W, so d(j) <= r(j) < r(i) + W: at d(j), call i still counted. So did all the others,
 * which are as many as the limit, and j was refused: a contradiction. Neither network delays nor a busy server
 * matter, only that both clocks run equally fast.
 *
 * **Lapses.** If the event loop was blocked, a charge may have left the window before it was renewed. So each
 * admission renews the charges that are due, and an admission that was decided without one of them is given back
 * and decided again. This needs no timer. Other processes on the same limiter can't see a lapse, and a timer
 * renews the charges for them each quarter of a window. That fails if a process is blocked for half of one.
 *
 * A charge moves by a new charge before the refund, so the key never counts less meanwhile. That takes counts
 * above the limit, for which an exact log has no entries: only the buckets of `'sliding-window'` will do.
 */

import type { CheckOptions, LimiterRule } from '../api/call-options.js'
import type { Limiter } from '../api/limiter.js'
import type { Clock } from '../core/clock.js'
import { isClosed } from '../core/closed.js'
import { MillraceLimited } from '../core/limited.js'
import { LONGEST_TIMER_MS } from '../core/long-timer.js'
import type { Signal } from '../core/on-abort.js'
import { MAX_LIMIT } from '../core/rule-algorithms.js'

/** A limiter that decides on the calling thread, with the clock of its decisions. */
export interface OwnLimiter extends Limiter {
  readonly clock: Clock
}

type Decision = ReturnType<Limiter['check']>

const hostsOf = new WeakMap<OwnLimiter, Map<string, Host>>()

/** The host of a key, shared by all that use the limiter in this thread. */
export function hostOf(limiter: OwnLimiter, key: string): Host {
  let hosts = hostsOf.get(limiter)
  if (hosts === undefined) {
    hosts = new Map()
    hostsOf.set(limiter, hosts)
  }
  let host = hosts.get(key)
  if (host === undefined) {
    host = new Host(limiter, key, () => hosts.delete(key))
    hosts.set(key, host)
  }
  return host
}

/** A call that has been admitted. End it once: by `end` if it was sent, else by `cancel`. */
export class Permit {
  readonly #host: Host
  readonly isStrict: boolean
  /** The charge, if it can be given back. */
  decision: Decision | undefined
  /** A reading of the limiter's clock at or before the charge. */
  chargedMs: number

  constructor(host: Host, decision: Decision, chargedMs: number, isStrict: boolean) {
    this.#host = host
    this.decision = decision
    this.chargedMs = chargedMs
    this.isStrict = isStrict
  }

  /** The call has its answer, or has failed: a window from now it does not count any more. */
  end(): void {
    this.#host.end(this)
  }

  /** The call was not sent: it does not count. */
  cancel(): void {
    this.#host.cancel(this)
  }
}

export class Host {
  /** Pending calls that have no permit yet. */
  waiting = 0
  /** How many pauses the answers have told, and how long the last one was. */
  pauses = 0
  lastPauseMs = 0
  readonly #limiter: OwnLimiter
  readonly #key: string
  readonly #forget: () => void
  /** The strict calls on their way, the earliest charge first. */
  readonly #onTheirWay = new Set<Permit>()
  /** How many charges have left the window before they were renewed. */
  #lapses = 0
  #timer: NodeJS.Timeout | undefined

  constructor(limiter: OwnLimiter, key: string, forget: () => void) {
    this.#limiter = limiter
    this.#key = key
    this.#forget = forget
  }

  /** Admits a call if there is room now. A refusal is never charged. */
  admitNow(isStrict: boolean): Permit | undefined {
    this.#renew()
    const nowMs = this.#limiter.clock.now()
    if (!this.#limiter.peek(this.#key).allowed) return undefined
    const decision = this.#limiter.check(this.#key)
    return decision.allowed ? this.#send(new Permit(this, decision, nowMs, isStrict)) : undefined
  }

  /** Admits a call when there is room: in the order of the calls. Rejects with the signal's reason. */
  async admit(signal: Signal, isStrict: boolean): Promise<Permit> {
    for (let hasLapsed = false; ; ) {
      const lapses = this.#lapses
      const decision = await this.#limiter.wait(this.#key, { signal })
      if (!isStrict) return this.#send(new Permit(this, decision, 0, false))
      // The thread may have been busy since the decision: the charge begins again, before it is relied on.
      const permit = new Permit(this, decision, 0, true)
      if (this.#charge(permit) === 0 && !hasLapsed) {
        hasLapsed = true // only once: the decision of a full table has no charge
        this.#lapses++
      }
      this.#renew()
      if (this.#lapses === lapses) return this.#send(permit)
      this.cancel(permit)
    }
  }

  /** How long the host is paused from now on, in milliseconds; 0: it is not. */
  pausedMs(): number {
    return this.#limiter.peek(this.#key, 0).retryAfterMs // a cost of 0 is refused only during a block
  }

  /** Pauses the host for all that share the limiter. An earlier pause that lasts longer stays. */
  pause(ms: number): void {
    if (ms <= 0) return
    this.#ifOpen(() => {
      if (ms > this.pausedMs()) this.#limiter.block(this.#key, ms)
    })
    this.pauses++
    this.lastPauseMs = ms
  }

  /** The error of a call that is refused now. */
  refusal(): MillraceLimited {
    return new MillraceLimited(this.#limiter.peek(this.#key))
  }

  end(permit: Permit): void {
    if (permit.isStrict && !this.#onTheirWay.delete(permit)) return
    if (permit.isStrict) {
      this.#ifOpen(() => {
        this.#renew() // before the refund wakes a pending call
        this.#charge(permit)
      })
    }
    this.release()
  }

  cancel(permit: Permit): void {
    this.#onTheirWay.delete(permit)
    const { decision } = permit
    if (decision !== undefined) this.#ifOpen(() => this.#limiter.refund(decision))
    this.release()
  }

  /** Forgets the host while no call uses it. */
  release(): void {
    if (this.#onTheirWay.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
    if (this.waiting === 0) this.#forget()
  }

  #send(permit: Permit): Permit {
    if (!permit.isStrict) return permit
    this.#onTheirWay.add(permit)
    this.#timer ??= setInterval(
      () => this.#ifOpen(() => this.#renew()),
      Math.min(this.#windowMs() / 4, LONGEST_TIMER_MS),
    ).unref()
    return permit
  }

  /** Charges again the calls whose charge is older than a quarter of the window. */
  #renew(): void {
    if (this.#onTheirWay.size === 0) return
    const nowMs = this.#limiter.clock.now()
    const windowMs = this.#windowMs()
    for (const permit of this.#onTheirWay) {
      const ageMs = nowMs - permit.chargedMs
      if (ageMs < windowMs / 4) break
      if (ageMs >= windowMs) this.#lapses++
      this.#charge(permit)
      this.#onTheirWay.delete(permit)
      this.#onTheirWay.add(permit)
    }
  }

  /** Charges a call from now on. Returns how many units of its earlier charge were given back. */
  #charge(permit: Permit): number {
    const { clock, rules } = this.#limiter
    const earlier = permit.decision
    permit.chargedMs = clock.now()
    const decision = this.#limiter.check(this.#key, 1, beyondLimits(rules))
    if (!decision.allowed) this.#limiter.penalize(this.#key, 1) // during a pause: it can't be given back
    permit.decision = decision.allowed ? decision : undefined
    return earlier === undefined ? 0 : this.#limiter.refund(earlier)
  }

  /** The shortest window: charges leave it first. */
  #windowMs(): number {
    return Math.min(...this.#limiter.rules.map(({ windowMs }) => windowMs))
  }

  /** Runs a change unless the limiter is closed: then there is nothing to count. */
  #ifOpen(change: () => void): void {
    try {
      change()
    } catch (error) {
      if (!isClosed(error)) throw error
    }
  }
}

/** The limits of a charge that is no request: as large as a rule accepts. */
function beyondLimits(rules: readonly LimiterRule[]): CheckOptions {
  const largest = ({ unit = 1 }: LimiterRule) =>
    Math.min(MAX_LIMIT, Math.floor(Number.MAX_SAFE_INTEGER / unit)) * unit
  if (rules.length === 1) return { limit: largest(rules[0]!) }
  return { limit: Object.fromEntries(rules.map((rule) => [rule.name, largest(rule)])) }
}
