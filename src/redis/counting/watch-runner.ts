// `optimistic: true`: decisions by WATCH, a read, and MULTI/EXEC instead of a script. It is the check-and-set of
// https://redis.io/docs/latest/develop/using-commands/transactions/.
//
// A transaction has its connection for itself, so the limiter opens up to four, and calls wait for one. Two calls of one
// key would only make each other begin anew, so the calls of a key run one after the other, in order. What is left are
// the changes of other processes: then EXEC runs nothing, and the call reads again, until its deadline.
//
// A call that is not settled at its deadline closes the connection that it uses: the server forgets a watch and
// commands without EXEC, and a late reply meets nobody. The next call opens another one. A connection that is still
// being made is kept: that may take longer than a deadline.
import { MillraceError } from '../../core/errors.js'
import { Breaker } from '../../remote/breaker.js'
import { Deadlines, lateError, type Pending } from '../../remote/deadlines.js'
import { isReply } from '../../remote/last-error.js'
import { Outage } from '../../remote/outage.js'
import type { Channel } from '../channel.js'
import type { Command } from '../clients/connection.js'
import type { CountingCall } from './counting-call.js'
import type { Runner } from './counting-store.js'
import type { WatchSession } from './watch-session.js'

/** Connections for transactions. */
const MOST_SESSIONS = 4

/** A call. It is settled once: by its reply, by a failure, or by its deadline. */
class Job implements Pending {
  readonly call: CountingCall
  readonly isProbe: boolean
  /** Rejects at the deadline. */
  readonly expired: Promise<never>
  readonly #onEnd: (job: Job, error?: unknown) => void
  readonly #resolve: (reply: readonly number[]) => void
  readonly #reject: (error: unknown) => void
  readonly #whyNot: () => unknown
  #expire: (error: Error) => void = () => {}
  isSettled = false
  /** Whether EXEC has gone out. */
  isSent = false

  constructor(
    call: CountingCall,
    isProbe: boolean,
    whyNot: () => unknown,
    onEnd: (job: Job, error?: unknown) => void,
    resolve: (reply: readonly number[]) => void,
    reject: (error: unknown) => void,
  ) {
    this.call = call
    this.isProbe = isProbe
    this.#whyNot = whyNot
    this.#onEnd = onEnd
    this.#resolve = resolve
    this.#reject = reject
    this.expired = new Promise((_, expire) => {
      this.#expire = expire
    })
    this.expired.catch(() => {}) // a call that has no connection yet
  }

  succeed(reply: readonly number[]): void {
    if (this.isSettled) return
    this.isSettled = true
    this.#onEnd(this)
    this.#resolve(reply)
  }

  fail(error: unknown): void {
    if (this.isSettled) return
    this.isSettled = true
    const cause = isReply(error) || error instanceof MillraceError ? error : (this.#whyNot() ?? error)
    this.#onEnd(this, cause)
    this.#reject(error instanceof MillraceError ? error : new Outage(cause, this.isSent && !isNotRun(error)))
  }

  expire(): void {
    const late = lateError()
    this.fail(late)
    this.#expire(late)
  }
}

/** Runs each call as a transaction. */
export class WatchRunner implements Runner {
  readonly mostKeys = 1
  retries = 0
  onRecovery: () => void = () => {}
  readonly #channel: Channel
  readonly #open: () => WatchSession
  readonly #deadlines: Deadlines
  readonly #breaker = new Breaker()
  readonly #idle: WatchSession[] = []
  readonly #sessions = new Set<WatchSession>()
  /** Calls that wait for a connection. */
  readonly #waiting: Job[] = []
  /** By the name of a key that has a call under way: the calls that wait for its end. */
  readonly #busy = new Map<string, Job[]>()
  #pending = 0
  #isClosed = false
  #drained: () => void = () => {}

  /**
   * @param channel checks the server, and sends what is no transaction. Its script is not called
   * @param open makes a connection of the limiter's own
   */
  constructor(channel: Channel, open: () => WatchSession, deadlineMs: number) {
    this.#channel = channel
    this.#open = open
    this.#deadlines = new Deadlines(deadlineMs)
  }

  async ready(): Promise<void> {
    await this.#channel.ready()
    if (this.#sessions.size === 0 && !this.#isClosed) this.#idle.push(this.#openSession())
  }

  run(call: CountingCall): Promise<readonly number[]> {
    const wasOpen = this.#breaker.isOpen
    const whyNot = () => this.#channel.whyNot()
    if (this.#isClosed || !this.#breaker.admits(performance.now()))
      return Promise.reject(new Outage(whyNot() ?? this.#breaker.cause, false))
    return new Promise((resolve, reject) => {
      const job = new Job(
        call,
        wasOpen,
        whyNot,
        (ended, error) => this.#noteEnd(ended, error),
        resolve,
        reject,
      )
      this.#pending++
      this.#deadlines.add(job)
      this.#channel.usable().then(
        () => this.#enqueue(job),
        (fault: unknown) => job.fail(fault),
      )
    })
  }

  noteLoss(): void {
    this.#channel.noteLoss()
  }

  onPrimaries(act: (send: (command: Command) => Promise<unknown>) => Promise<void>): Promise<void> {
    return this.#channel.onPrimaries(act)
  }

  /** Waits for the pending calls, which the deadline bounds. No call follows. */
  async close(): Promise<void> {
    if (this.#pending > 0) {
      await new Promise<void>((resolve) => {
        this.#drained = resolve
      })
    }
    this.#isClosed = true
    this.#deadlines.expireAll()
    await Promise.all([...this.#sessions].map((session) => session.close()))
    await this.#channel.close()
  }

  #noteEnd({ isProbe }: Job, error: unknown): void {
    const wasOpen = this.#breaker.isOpen
    if (error === undefined || error instanceof MillraceError) this.#breaker.succeed()
    else this.#breaker.fail(performance.now(), isProbe, error)
    if (wasOpen && !this.#breaker.isOpen) this.onRecovery()
    if (--this.#pending === 0) this.#drained()
  }

  #enqueue(job: Job): void {
    const key = job.call.names[0]!
    const behind = this.#busy.get(key)
    if (behind !== undefined) {
      behind.push(job)
      return
    }
    this.#busy.set(key, [])
    this.#waiting.push(job)
    this.#pump()
  }

  /** Gives free connections to the calls that wait. */
  #pump(): void {
    while (this.#waiting.length > 0) {
      const isFree = this.#idle.length > 0 || this.#sessions.size < MOST_SESSIONS
      if (!isFree) return
      const job = this.#waiting.shift()!
      if (job.isSettled) this.#next(job)
      else void this.#serve(job, this.#take())
    }
  }

  /** A connection that is free, or a new one. */
  #take(): WatchSession {
    const ready = this.#idle.findLastIndex(({ isReady }) => isReady)
    if (ready >= 0) return this.#idle.splice(ready, 1)[0]!
    return this.#sessions.size < MOST_SESSIONS ? this.#openSession() : this.#idle.pop()!
  }

  #openSession(): WatchSession {
    const session = this.#open()
    this.#sessions.add(session)
    return session
  }

  async #serve(job: Job, session: WatchSession): Promise<void> {
    try {
      job.succeed(await Promise.race([this.#decide(job, session), job.expired]))
    } catch (error) {
      if (session.isInUse) {
        this.#sessions.delete(session)
        void session.close()
      }
      job.fail(error)
    }
    if (this.#sessions.has(session)) this.#idle.push(session)
    this.#next(job)
    this.#pump()
  }

  async #decide(job: Job, session: WatchSession): Promise<readonly number[]> {
    for (;;) {
      await session.untilReady()
      if (job.isSettled) throw lateError()
      const reply = await session.attempt(job.call, () => {
        job.isSent = true
      })
      if (reply !== undefined) return reply
      job.isSent = false
      this.retries++
    }
  }

  /** The next call of the same key waits for a connection now. */
  #next({ call }: Job): void {
    const key = call.names[0]!
    const next = this.#busy.get(key)!.shift()
    if (next === undefined) this.#busy.delete(key)
    else this.#waiting.push(next)
  }
}

/**
 * Whether a server has answered by an error before EXEC has run anything. What it answers to a command of a
 * transaction makes EXEC run nothing.
 */
const isNotRun = isReply
