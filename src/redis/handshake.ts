import { closedError } from '../api/checks.js'
import type { MillraceError } from '../core/errors.js'
import { answerOf, isUnwelcome } from '../remote/answers.js'
import { Deadlines, lateError } from '../remote/deadlines.js'
import { isReply } from '../remote/last-error.js'
import { unwelcomeError } from '../remote/outage.js'
import { CONNECT_TIMEOUT_MS, reconnectMs } from '../remote/reconnect.js'
import type { Command, RedisConnection } from './clients/connection.js'
import { type ServerDemands, serverState } from './clients/server-check.js'

// Captured at load, so that fake timers of a test don't stop the checks.
const { clearTimeout, setTimeout } = globalThis

/** A server that can't be used is asked once more after so long at the soonest. */
const CHECK_AGAIN_MS = 1_000
/** Of the pauses between attempts to connect, that before a server is looked at again: a quarter to half a second. */
const CHECK_LATER_ATTEMPTS = 10

/** What a handshake tells. */
export interface HandshakeEvents {
  /** A check begins: what was on its way before says nothing of the connection any more. */
  checking(): void
  /** `ready` waits, and the first attempt to connect has failed, or has taken too long. */
  failed(cause: unknown): void
  /** The server has been found usable, or not. @param nodes that have answered */
  settled(fault: MillraceError | undefined, nodes: readonly string[]): void
}

/** Whether counts are safe on a server: it is looked at after each connection, and while it can't be used. */
export class Handshake {
  readonly #connection: RedisConnection
  readonly #demands: ServerDemands
  readonly #probe: readonly Command[]
  readonly #events: HandshakeEvents
  readonly #deadlines = new Deadlines(CONNECT_TIMEOUT_MS)
  #state: 'new' | 'open' | 'unchecked' | 'closed' = 'new'
  #fault: MillraceError | undefined
  /** The check that is in progress. A lost connection may leave it pending for ever. */
  #checking: object | undefined
  #checkedMs = Number.NEGATIVE_INFINITY
  /** Why the last check has had no answer. */
  #error: unknown
  /** Whether the last check has found a replica. */
  #isReplica = false
  /** Whether nobody knows yet that the user has the rights that calls need. */
  #isUnproven = true
  /** The next check of a server that can't be used yet. */
  #later: NodeJS.Timeout | undefined
  #isUsable: Promise<void>
  #settleUsable: (fault: MillraceError | undefined) => void = () => {}
  /** Those who wait for `ready`. */
  #refusing: ((error: MillraceError) => void)[] = []

  /** @param probe shows whether the user has the rights that calls need: commands that change nothing that lasts */
  constructor(
    connection: RedisConnection,
    demands: ServerDemands,
    probe: readonly Command[],
    events: HandshakeEvents,
  ) {
    this.#connection = connection
    this.#demands = demands
    this.#probe = probe
    this.#events = events
    this.#isUsable = new Promise((resolve, reject) => {
      this.#settleUsable = (fault) => (fault === undefined ? resolve() : reject(fault))
    })
    this.#isUsable.catch(() => {}) // those who wait for it get the error
    connection.onFailure(() => this.#noteFailure())
    connection.onReady(() => void this.#check())
    if (connection.isReady) void this.#check()
  }

  /** `open`: the server has answered. `unchecked`: there is a new connection, or a replica. */
  get state(): 'new' | 'open' | 'unchecked' | 'closed' {
    return this.#state
  }

  /** Why the server can't be used. */
  get fault(): MillraceError | undefined {
    return this.#fault
  }

  /** Resolves when the server has been found usable. Rejects if it is not. Waits while it is away. */
  usable(): Promise<void> {
    if (this.#fault === undefined) return this.#isUsable
    this.again()
    return Promise.reject(this.#fault)
  }

  /**
   * As `usable`, but it rejects also when the server does not accept the password, when its user lacks a right, and when
   * its certificate is not trusted. A server that is away comes back by itself, a wrong password does not become right:
   * a start that waits for it would hang without a word. PostgreSQL's `pg` and the driver of MongoDB reject at once,
   * too. The connection goes on trying, since the server may be changed: then a later `ready` resolves.
   */
  ready(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.usable().then(resolve, reject)
      if (this.#state !== 'new') return
      this.#refusing.push(reject)
      this.#deadlines.within(this.#isUsable).catch(() => this.#noteFailure(lateError()))
      this.#noteFailure()
    })
  }

  /**
   * Why there is no connection by which a call with this key would go, or why the server has not answered the check.
   * Undefined if there is one, and for a connection that nobody has said anything of.
   */
  whyNot(key = ''): unknown {
    const failure = this.#connection.failureOf(key)
    return failure ?? (this.#state === 'open' ? undefined : this.#error)
  }

  /** A call is to go out: the server is looked at, if it has not been. */
  begin(): void {
    const isUnchecked = this.#state === 'new' || this.#state === 'unchecked'
    if (isUnchecked && this.#connection.isReady && this.#checking === undefined) void this.#check()
  }

  /** A server that can't be used may be mended meanwhile, and one that can may have changed. */
  again(): void {
    if (performance.now() - this.#checkedMs >= CHECK_AGAIN_MS) this.#lookAgain(this.#isReplica)
  }

  close(): void {
    this.#state = 'closed'
    clearTimeout(this.#later)
    this.#settleUsable(closedError())
    this.#deadlines.expireAll()
  }

  /** @param late if there is no other reason */
  #noteFailure(late?: Error): void {
    const failure = this.whyNot() ?? late
    if (this.#state !== 'new' || this.#refusing.length === 0 || failure === undefined) return
    this.#events.failed(failure)
    if (!isUnwelcome(failure)) return
    for (const reject of this.#refusing.splice(0)) reject(unwelcomeError(failure))
  }

  /** A server that can't be used yet. Nobody may call meanwhile, but wait for `ready`. */
  #checkLater(byOther: boolean): void {
    if (this.#state === 'closed') return
    this.#later ??= setTimeout(() => {
      this.#later = undefined
      if (this.#state !== 'open') this.#lookAgain(byOther)
    }, reconnectMs(CHECK_LATER_ATTEMPTS))
  }

  /** @param byOther whether by another connection: another server may have the address by now */
  #lookAgain(byOther: boolean): void {
    if (this.#state === 'closed' || !this.#connection.isReady || this.#checking !== undefined) return
    if (byOther && this.#connection.renew()) this.#events.checking()
    else void this.#check(false)
  }

  /** A connection has been made, or a server that was a replica may be the primary now. */
  async #check(isNew = true): Promise<void> {
    const own = {}
    this.#checking = own
    this.#checkedMs = performance.now()
    this.#events.checking()
    const isFirst = this.#state === 'new'
    // Of a Cluster, new nodes are looked at while the others go on.
    if (isNew && !isFirst && !this.#connection.isCluster) this.#state = 'unchecked'
    let state: Awaited<ReturnType<typeof serverState>>
    try {
      state = await this.#look()
    } catch (error) {
      // The connection is lost again, or the server is busy: the next connection or call begins again.
      if (this.#checking !== own) return
      this.#checking = undefined
      this.#error = error
      this.#noteFailure()
      return this.#checkLater(!isReply(error) || answerOf(error)?.remedy === 'reconnect')
    }
    if (this.#checking !== own) return // there is a newer connection, with a check of its own
    this.#checking = undefined
    this.#isReplica = state.isReplica
    // Of a failover: the next connection may be to the primary.
    if (state.isReplica && !isFirst) this.#waitForPrimary()
    else this.#settle(state.fault, state.nodes)
  }

  async #look(): ReturnType<typeof serverState> {
    const within = (answer: Promise<unknown>) => this.#deadlines.within(answer)
    const state = await serverState(this.#connection, within, this.#demands)
    if (state.fault === undefined && this.#isUnproven) await this.#prove(within)
    return state
  }

  #waitForPrimary(): void {
    this.#state = 'unchecked'
    this.#error = new Error('READONLY this server is a replica now')
    this.#checkLater(true)
  }

  #settle(fault: MillraceError | undefined, nodes: readonly string[]): void {
    this.#fault = fault
    if (this.#state === 'closed') return
    this.#state = 'open'
    this.#isUnproven = fault !== undefined
    this.#error = undefined
    this.#refusing = []
    this.#settleUsable(fault)
    if (fault === undefined) this.#isUsable = Promise.resolve() // after a fault, it has rejected
    this.#events.settled(fault, nodes)
  }

  /**
   * A node of a Cluster refuses a user without rights also if another one has the key.
   * @throws (rejects) the answer of a server, if the user lacks a right
   */
  async #prove(within: (answer: Promise<unknown>) => Promise<unknown>): Promise<void> {
    const sent = this.#connection
      .primaries()
      .flatMap(({ send }) => this.#probe.map((each) => within(send(each))))
    // Other errors say nothing of rights, and calls get them, too.
    for (const answer of await Promise.allSettled(sent))
      if (answer.status === 'rejected' && isUnwelcome(answer.reason)) throw answer.reason
  }
}
