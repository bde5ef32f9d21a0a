import { MillraceError } from '../core/errors.js'
import { lruCache } from '../core/lru-cache.js'
import { setImmediate, setTimeout } from '../core/real-timers.js'
import { answerOf, codeOf } from '../remote/answers.js'
import { Breaker } from '../remote/breaker.js'
import { Deadlines } from '../remote/deadlines.js'
import { messageOf } from '../remote/last-error.js'
import { NotSent } from '../remote/not-sent.js'
import { Outage } from '../remote/outage.js'
import type { ServersWatch } from '../remote/outage-watch.js'
import { type Arguments, type Attempt, Call, FIRST } from './call.js'
import type { Command, Primary, RedisConnection } from './clients/connection.js'
import type { ServerDemands } from './clients/server-check.js'
import { Handshake } from './handshake.js'
import { OLD_SERVER, type Script, withoutMemory } from './script.js'
import { Silence } from './silence.js'

/** Of more nodes of a Cluster, the breaker of the one that was not used for the longest time is forgotten. */
const MOST_NODES = 1_000
/** A slot that moves has some keys on either side for a short time. */
const TRY_AGAIN_MS = 20
/** The name of the server before it is known, of a Cluster as of others. */
const NO_NODE = ''

/**
 * Calls the script. Each call goes out at most once, and settles by the deadline. After a lost connection
 * nobody knows whether the server has run a call; a second one might charge twice.
 */
export class Channel {
  readonly #connection: RedisConnection
  readonly #script: Script
  /** Says whether the server may be used. */
  readonly handshake: Handshake
  readonly #deadlines: Deadlines
  readonly #silence: Silence
  /** By node: while one primary of a Cluster is down, the others decide. */
  readonly #breakers = new (lruCache().LRUCache)<string, Breaker>({
    max: MOST_NODES,
    dispose: (gone) => gone.close(),
  })
  readonly #outages: ServersWatch
  /** Calls before the first connection, which wait for it until their deadline. */
  #early: Call[] = []
  /** Calls that are not settled. */
  #pending = 0
  #drained: () => void = () => {}
  /** Called when the server can be used again after an outage. */
  onRecovery: () => void = () => {}

  /**
   * @param script of all calls that have none of their own
   * @param outages gets what becomes of the calls
   * @param probe shows whether the user has the rights that calls need: commands that change nothing that lasts
   */
  constructor(
    connection: RedisConnection,
    script: Script,
    deadlineMs: number,
    demands: ServerDemands,
    outages: ServersWatch,
    probe: readonly Command[] = [],
  ) {
    this.#connection = connection
    this.#script = script
    this.#outages = outages
    this.#deadlines = new Deadlines(deadlineMs)
    this.#silence = new Silence(deadlineMs)
    const events = {
      checking: () => this.#silence.end(),
      failed: (cause: unknown) => this.#outages.failed(NO_NODE, cause),
      settled: (fault: MillraceError | undefined, nodes: readonly string[]) => this.#noteUsable(fault, nodes),
    }
    this.handshake = new Handshake(connection, demands, probe, events)
  }

  get connection(): RedisConnection {
    return this.#connection
  }

  /** Whether no call goes out but a probe, because the server has not answered before. */
  get isInterrupted(): boolean {
    return [...this.#breakers.values()].some(({ isOpen }) => isOpen)
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
    if (this.handshake.fault !== undefined) return this.handshake.usable() as Promise<never>
    const breaker = this.#breakerOf(this.#connection.nodeOf(keys[0]!))
    const wasOpen = breaker.isOpen
    const nowMs = performance.now()
    if (this.#silence.isTooLong(nowMs)) this.#renew()
    if (!breaker.admits(nowMs) && !(frees && codeOf(breaker.cause) === 'OOM'))
      return Promise.reject(new Outage(this.handshake.whyNot(keys[0]!) ?? breaker.cause, false))
    this.#silence.begin(nowMs)
    return new Promise((resolve, reject) => {
      const call = new Call(this, script, keys, args, frees, breaker, wasOpen, resolve, reject)
      this.#pending++
      this.handshake.begin()
      const { state } = this.handshake
      if (state === 'new') this.#wait(call)
      else if (state === 'open' && this.#connection.isReady) this.#send(call)
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
      breaker = new Breaker(this.#outages, node)
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
    if (this.handshake.fault !== undefined) await this.handshake.usable()
    if (this.handshake.state === 'new') await this.#untilUsable()
    if (this.handshake.state !== 'open' || !this.#connection.isReady)
      throw new Outage(this.handshake.whyNot() ?? new Error('no connection'), false)
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
      await this.#deadlines.within(this.handshake.usable())
    } catch (error) {
      throw error instanceof MillraceError ? error : new Outage(this.handshake.whyNot() ?? error, false)
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
    this.handshake.close()
    this.#deadlines.expireAll()
    for (const breaker of this.#breakers.values()) breaker.close()
    await this.#connection.close()
  }

  /** Gives up a connection on which nothing arrives. Its calls fail: nobody knows whether they have been run. */
  #renew(): void {
    if (this.handshake.state === 'closed') return
    this.#silence.end()
    this.#connection.renew()
  }

  /** The server has lost something: a policy that evicts may have been set. Calls go on meanwhile. */
  noteLoss(): void {
    if (this.handshake.state === 'open') this.handshake.again()
  }

  /** The server has answered the handshake: calls that have waited go out, or are refused. */
  #noteUsable(fault: MillraceError | undefined, nodes: readonly string[]): void {
    const breakers = nodes.map((node) => this.#breakerOf(node))
    const wasOpen = breakers.some(({ isOpen }) => isOpen)
    this.#leaveOldNodes()
    this.#outages.answered(NO_NODE)
    for (const breaker of breakers) breaker.succeed()
    const early = this.#early.filter(({ isSettled }) => !isSettled)
    this.#early = []
    for (const call of early)
      if (fault === undefined) this.#send(call)
      else call.refuse(fault)
    if (wasOpen && fault === undefined) this.onRecovery()
  }

  /** Of a Cluster: no call goes to a node any more that has lost its slots to another one. */
  #leaveOldNodes(): void {
    const present = new Set(this.#connection.primaries().map(({ node }) => node))
    for (const [node, breaker] of this.#breakers.entries()) if (!present.has(node)) breaker.close()
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
    else if (remedy === 'again' && !isCluster) this.handshake.again()
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
