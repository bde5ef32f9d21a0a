import { LRUCache } from 'lru-cache'
import { closedError } from '../api/checks.js'
import { MillraceError } from '../core/errors.js'
import { answerOf, codeOf, isUnwelcome } from '../remote/answers.js'
import { Breaker } from '../remote/breaker.js'
import { Deadlines } from '../remote/deadlines.js'
import { isReply, messageOf } from '../remote/last-error.js'
import { NotSent } from '../remote/not-sent.js'
import { Outage, unwelcomeError } from '../remote/outage.js'
import { CONNECT_TIMEOUT_MS, reconnectMs } from '../remote/reconnect.js'
import { type Arguments, type Attempt, Call, FIRST } from './call.js'
import type { Command, Primary, RedisConnection } from './clients/connection.js'
import { type ServerDemands, serverState } from './clients/server-check.js'
import { OLD_SERVER, type Script, withoutMemory } from './script.js'
import { Silence } from './silence.js'

// Captured at load, so that fake timers of a test don't stop the calls.
const { clearTimeout, setImmediate, setTimeout } = globalThis

/** Of more nodes of a Cluster, the breaker of the one that was not used for the longest time is forgotten. */
const MOST_NODES = 1_000
/** A slot that moves has some keys on either side for a short time. */
const TRY_AGAIN_MS = 20
/** A server that can't be used is asked once more after so long at the soonest. */
const CHECK_AGAIN_MS = 1_000

/** Of the pauses between attempts to connect, that before a server is looked at again: a quarter to half a second. */
const CHECK_LATER_ATTEMPTS = 10

/**
 * Calls the script. Each call goes out at most once, and settles by the deadline. After a lost connection
 * nobody knows whether the server has run a call; a second one might charge twice.
 */
export class Channel {
  readonly #connection: RedisConnection
  readonly #script: Script
  readonly #demands: ServerDemands
  readonly #deadlines: Deadlines
  readonly #silence: Silence
  /** By node: while one primary of a Cluster is down, the others decide. */
  readonly #breakers = new LRUCache<string, Breaker>({ max: MOST_NODES })
  /** Calls before the first connection, which wait for it until their deadline. */
  #early: Call[] = []
  #state: 'new' | 'open' | 'unchecked' | 'closed' = 'new'
  /** Why the server can't be used. */
  #fault: MillraceError | undefined
  /** The check of the server that is in progress. A lost connection may leave it pending for ever. */
  #checking: object | undefined
  #checkedMs = Number.NEGATIVE_INFINITY
  /** Why the last check of the server has had no answer. */
  #checkError: unknown
  /** Whether the last check has found a replica. */
  #isReplica = false
  /** Whether nobody knows yet that the user has the rights that calls need. */
  #isUnproven = true
  readonly #checkDeadlines = new Deadlines(CONNECT_TIMEOUT_MS)
  readonly #probe: readonly Command[]
  /** The next check of a server that can't be used yet. */
  #later: NodeJS.Timeout | undefined
  /** Calls that are not settled. */
  #pending = 0
  #drained: () => void = () => {}
  #isUsable: Promise<void>
  #settleUsable: (fault: MillraceError | undefined) => void = () => {}
  /** Those who wait for `ready`. */
  #refusing: ((error: MillraceError) => void)[] = []
  /** Called when the server can be used again after an outage. */
  onRecovery: () => void = () => {}

  /**
   * @param script of all calls that have none of their own
   * @param probe shows whether the user has the rights that calls need: commands that change nothing that lasts
   */
  constructor(
    connection: RedisConnection,
    script: Script,
    deadlineMs: number,
    demands: ServerDemands,
    probe: readonly Command[] = [],
  ) {
    this.#connection = connection
    this.#demands = demands
    this.#script = script
    this.#probe = probe
    this.#deadlines = new Deadlines(deadlineMs)
    this.#silence = new Silence(deadlineMs)
    this.#isUsable = new Promise((resolve, reject) => {
      this.#settleUsable = (fault) => (fault === undefined ? resolve() : reject(fault))
    })
    this.#isUsable.catch(() => {}) // those who wait for it get the error
    connection.onFailure(() => this.#noteFailure())
    connection.onReady(() => void this.#check())
    if (connection.isReady) void this.#check()
  }

  get connection(): RedisConnection {
    return this.#connection
  }

  /** Whether no call goes out but a probe, because the server has not answered before. */
  get isInterrupted(): boolean {
    return [...this.#breakers.values()].some(({ isOpen }) => isOpen)
  }

  /** Resolves when the server has been found usable. Rejects if it is not. Waits while it is away. */
  usable(): Promise<void> {
    if (this.#fault === undefined) return this.#isUsable
    this.#checkAgain()
    return Promise.reject(this.#fault)
  }

  /**
   * The same, but it rejects also when the server does not accept the password, when its user lacks a right, and when
   * its certificate is not trusted. A server that is away comes back by itself, a wrong password does not become right:
   * a start that waits for it would hang without a word. PostgreSQL's `pg` and the driver of MongoDB reject at once,
   * too. The connection goes on trying, since the server may be changed: then a later `ready` resolves.
   */
  ready(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.usable().then(resolve, reject)
      if (this.#state === 'new') this.#refusing.push(reject)
      this.#noteFailure()
    })
  }

  /**
   * Why there is no connection by which a call with this key would go, or why the server has not answered the check.
   * Undefined if there is one, and for a connection that nobody has said anything of.
   */
  whyNot(key = ''): unknown {
    const failure = this.#connection.failureOf(key)
    return failure ?? (this.#state === 'open' ? undefined : this.#checkError)
  }

  #noteFailure(): void {
    if (this.#state !== 'new') return
    const failure = this.whyNot()
    if (!isUnwelcome(failure)) return
    for (const reject of this.#refusing.splice(0)) reject(unwelcomeError(failure))
  }

  /**
   * Sends one call of the script.
   * @param frees whether it takes no more memory than before
   * @throws Outage (rejects) if there is no reply in time; MillraceError if the server can't be used
   */
  call(
    keys: readonly string[],
    args: Arguments,
    script = this.#script,
    frees = false,
  ): Promise<readonly number[]> {
    if (this.#fault !== undefined) return this.usable() as Promise<never>
    const breaker = this.#breakerOf(this.#connection.nodeOf(keys[0]!))
    const wasOpen = breaker.isOpen
    const nowMs = performance.now()
    if (this.#silence.isTooLong(nowMs)) this.#renew()
    if (!breaker.admits(nowMs) && !(frees && codeOf(breaker.cause) === 'OOM'))
      return Promise.reject(new Outage(this.whyNot(keys[0]!) ?? breaker.cause, false))
    this.#silence.begin(nowMs)
    return new Promise((resolve, reject) => {
      const call = new Call(this, script, keys, args, frees, breaker, wasOpen, resolve, reject)
      this.#pending++
      const { isReady } = this.#connection
      const isUnchecked = this.#state === 'new' || this.#state === 'unchecked'
      if (isUnchecked && isReady && this.#checking === undefined) void this.#check()
      if (this.#state === 'new') this.#wait(call)
      else if (this.#state === 'open' && isReady) this.#send(call)
      else return call.fail(new Error('no connection to the primary'))
      this.#deadlines.add(call)
    })
  }

  /** Keeps a call until the first connection. Those whose deadline has passed go. */
  #wait(call: Call): void {
    if (this.#early[0]?.isSettled) this.#early = this.#early.filter(({ isSettled }) => !isSettled)
    this.#early.push(call)
  }

  #breakerOf(node: string): Breaker {
    let breaker = this.#breakers.get(node)
    if (breaker === undefined) {
      breaker = new Breaker()
      this.#breakers.set(node, breaker)
    }
    return breaker
  }

  noteFailure({ breaker, isProbe }: Call, cause: unknown): void {
    if (breaker.fail(performance.now(), isProbe, cause)) this.#connection.refresh()
  }

  noteSettled(): void {
    if (--this.#pending === 0) this.#drained()
  }

  /**
   * Sends commands of its own to each primary, each with a deadline of its own.
   * @throws Outage (rejects)
   */
  async onPrimaries(act: (send: Primary['send']) => Promise<void>): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve)) // what this turn has asked goes out before
    if (this.#fault !== undefined) await this.usable()
    if (this.#state === 'new') await this.#untilUsable()
    if (this.#state !== 'open' || !this.#connection.isReady)
      throw new Outage(this.whyNot() ?? new Error('no connection'), false)
    try {
      for (const { send } of this.#connection.primaries())
        await act((command) => this.#deadlines.within(send(command)))
    } catch (error) {
      this.#mend(error)
      throw error instanceof Outage ? error : new Outage(error, true)
    }
  }

  /** Resolves when the server can be used. Rejects at the deadline. */
  async #untilUsable(): Promise<void> {
    try {
      await this.#deadlines.within(this.#isUsable)
    } catch (error) {
      throw error instanceof MillraceError ? error : new Outage(this.whyNot() ?? error, false)
    }
  }

  /** Waits for the pending calls, which the deadline bounds. No call follows. */
  async close(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve)) // what this turn has asked goes out before
    if (this.#pending > 0) {
      await new Promise<void>((resolve) => {
        this.#drained = resolve
      })
    }
    this.#state = 'closed'
    clearTimeout(this.#later)
    this.#settleUsable(closedError())
    this.#deadlines.expireAll()
    this.#checkDeadlines.expireAll()
    await this.#connection.close()
  }

  /** Gives up a connection on which nothing arrives. Its calls fail: nobody knows whether they have been run. */
  #renew(): void {
    if (this.#state === 'closed') return
    this.#silence.end()
    this.#connection.renew()
  }

  /** The server has lost something: a policy that evicts may have been set. Calls go on meanwhile. */
  noteLoss(): void {
    if (this.#state === 'open') this.#checkAgain()
  }

  /** A server that can't be used may be mended meanwhile. */
  #checkAgain(): void {
    if (performance.now() - this.#checkedMs >= CHECK_AGAIN_MS) this.#lookAgain(this.#isReplica)
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
    if (byOther && this.#connection.renew()) this.#silence.end()
    else void this.#check(false)
  }

  /** A connection has been made, or a server that was a replica may be the primary now. */
  async #check(isNew = true): Promise<void> {
    const own = {}
    this.#checking = own
    this.#checkedMs = performance.now()
    this.#silence.end()
    const isFirst = this.#state === 'new'
    // Of a Cluster, new nodes are looked at while the others go on.
    if (isNew && !isFirst && !this.#connection.isCluster) this.#state = 'unchecked'
    let nodes: readonly string[] = []
    try {
      const within = (answer: Promise<unknown>) => this.#checkDeadlines.within(answer)
      const state = await serverState(this.#connection, within, this.#demands)
      const { fault, isReplica } = state
      nodes = state.nodes
      if (fault === undefined && this.#isUnproven) await this.#prove(this.#probe, within)
      if (this.#checking !== own) return // there is a newer connection, with a check of its own
      this.#isReplica = isReplica
      // Of a failover: the next connection may be to the primary.
      if (isReplica && !isFirst) {
        this.#state = 'unchecked'
        this.#checkError = new Error('READONLY this server is a replica now')
        return this.#checkLater(true)
      }
      this.#fault = fault
    } catch (error) {
      // The connection is lost again, or the server is busy: the next connection or call begins again.
      if (this.#checking !== own) return
      this.#checkError = error
      this.#noteFailure()
      return this.#checkLater(!isReply(error) || answerOf(error)?.remedy === 'reconnect')
    } finally {
      if (this.#checking === own) this.#checking = undefined
    }
    if ((this.#state as string) === 'closed') return
    this.#state = 'open'
    this.#isUnproven = this.#fault !== undefined
    this.#checkError = undefined
    this.#refusing = []
    const breakers = nodes.map((node) => this.#breakerOf(node))
    const wasOpen = breakers.some(({ isOpen }) => isOpen)
    for (const breaker of breakers) breaker.succeed()
    const early = this.#early
    this.#early = []
    if (this.#fault !== undefined) {
      this.#settleUsable(this.#fault)
      for (const call of early) call.refuse(this.#fault)
      return
    }
    this.#settleUsable(undefined)
    this.#isUsable = Promise.resolve() // after a fault, it has rejected
    for (const call of early) if (!call.isSettled) this.#send(call)
    if (wasOpen) this.onRecovery()
  }

  /**
   * A node of a Cluster refuses a user without rights also if another one has the key.
   * @throws (rejects) the answer of a server, if the user lacks a right
   */
  async #prove(
    probe: readonly Command[],
    within: (answer: Promise<unknown>) => Promise<unknown>,
  ): Promise<void> {
    const sent = this.#connection.primaries().flatMap(({ send }) => probe.map((each) => within(send(each))))
    // Other errors say nothing of rights, and calls get them, too.
    for (const answer of await Promise.allSettled(sent))
      if (answer.status === 'rejected' && isUnwelcome(answer.reason)) throw answer.reason
  }

  #send(call: Call, attempt: Attempt = FIRST): void {
    const { keys, args, script } = call
    const { kind } = attempt
    const source =
      kind === 'EVALSHA' ? script.sha : kind === 'EVAL' ? script.source : withoutMemory(script.source)
    const command = [kind === 'EVALSHA' ? kind : 'EVAL', source, String(keys.length), ...keys, ...args]
    call.isSent = true
    this.#connection.send(command, keys[0]!).then(
      (reply) => this.#succeed(call, reply),
      (error: unknown) => {
        this.#silence.end()
        this.#mend(error)
        if (!call.isSettled) this.#answer(call, attempt, error)
      },
    )
  }

  /** Sends a call again that no server has run, if that can help; else it fails. */
  #answer(call: Call, attempt: Attempt, error: unknown): void {
    const remedy = answerOf(error)?.remedy
    const { isCluster } = this.#connection
    if (remedy === 'learn' && attempt.kind === 'EVALSHA') this.#send(call, { ...attempt, kind: 'EVAL' })
    else if ((remedy === 'again' && isCluster) || (attempt.isAgain && error instanceof NotSent))
      setTimeout(() => call.isSettled || this.#send(call, { ...attempt, isAgain: true }), TRY_AGAIN_MS)
    else if (codeOf(error) === 'OOM' && call.frees && attempt.full === undefined)
      this.#send(call, { ...attempt, kind: 'without memory', full: error })
    else call.fail(attempt.full !== undefined && OLD_SERVER.test(messageOf(error)) ? attempt.full : error)
  }

  /** Mends what an answer shows, for the next calls. */
  #mend(error: unknown): void {
    const remedy = answerOf(error)?.remedy
    const { isCluster } = this.#connection
    if (remedy === 'reconnect' && !isCluster) this.#connection.renew()
    else if (remedy === 'reconnect' || remedy === 'look') this.#connection.refresh()
    else if (isCluster) return
    else if (remedy === 'again') this.#checkAgain() // a node of a Cluster
  }

  #succeed(call: Call, reply: unknown): void {
    this.#silence.end()
    const { breaker } = call
    const wasOpen = breaker.isOpen
    if (!call.isSettled) breaker.succeed()
    call.succeed(reply as readonly number[])
    if (wasOpen && !breaker.isOpen) this.onRecovery()
  }
}
