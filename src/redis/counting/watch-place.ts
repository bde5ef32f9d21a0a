// `optimistic: true`: decisions by WATCH, a read, and MULTI/EXEC instead of a script. It is the check-and-set of
// https://redis.io/docs/latest/develop/using-commands/transactions/.
//
// A transaction has its connection for itself, so the limiter opens up to four, and calls wait for one.
//
// A call that is not settled at its deadline closes the connection that it uses: the server forgets a watch and
// commands without EXEC, and a late reply meets nobody. The next call opens another one. A connection that is still
// being made is kept: that may take longer than a deadline.
import { lateError } from '../../remote/deadlines.js'
import { Guard, type OpenCall } from '../../remote/guard.js'
import { isReply } from '../../remote/last-error.js'
import type { ServersWatch } from '../../remote/outage-watch.js'
import type { Values } from '../../values/values.js'
import type { KeyOfCall, ValuesPlace, ValuesRunner } from '../../values/values-runner.js'
import type { Channel } from '../channel.js'
import type { WatchSession } from './watch-session.js'
import { WatchedValues } from './watched-values.js'

/** Connections for transactions. */
const MOST_SESSIONS = 4

/** The values of each call are those of a connection which it has for itself. */
export class WatchPlace implements ValuesPlace {
  readonly #channel: Channel
  readonly #open: () => WatchSession
  readonly #clear: (runner: ValuesRunner) => Promise<void>
  readonly #guard: Guard
  readonly #idle: WatchSession[] = []
  readonly #sessions = new Set<WatchSession>()
  /** Calls that wait for a connection. */
  readonly #waiting: (() => void)[] = []
  #isClosed = false

  /**
   * @param channel checks the server, and sends what is no transaction. Its script is not called
   * @param open makes a connection of the limiter's own
   * @param clear forgets all keys
   */
  constructor(
    channel: Channel,
    open: () => WatchSession,
    deadlineMs: number,
    clear: (runner: ValuesRunner) => Promise<void>,
    outages: ServersWatch,
  ) {
    this.#channel = channel
    this.#open = open
    this.#clear = clear
    this.#guard = new Guard(
      { name: 'Redis', whyNot: () => channel.handshake.whyNot(), isAnswer: isReply },
      deadlineMs,
      outages,
    )
  }

  set onRecovery(listener: () => void) {
    this.#guard.onRecovery = listener
  }

  async ready(): Promise<void> {
    await this.#channel.handshake.ready()
    if (this.#sessions.size === 0 && !this.#isClosed) this.#idle.push(this.#openSession())
  }

  run<T>(_: string, act: (call: OpenCall) => Promise<T>): Promise<T> {
    return this.#guard.run(async (call) => {
      await this.#channel.handshake.usable()
      return act(call)
    })
  }

  async use<T>(
    { names, rules, timeMs }: KeyOfCall,
    call: OpenCall,
    act: (values: Values) => Promise<T>,
  ): Promise<T> {
    const session = await this.#take()
    const transact = async (): Promise<T> => {
      await session.untilReady()
      if (call.isSettled) throw lateError()
      session.isInUse = true
      const result = await act(new WatchedValues(session, names, rules, timeMs === 0))
      session.isInUse = false
      return result
    }
    try {
      return await Promise.race([transact(), call.expired])
    } finally {
      if (session.isInUse) {
        this.#sessions.delete(session)
        void session.close()
      } else this.#idle.push(session)
      this.#waiting.shift()?.()
    }
  }

  clearAll(runner: ValuesRunner): Promise<void> {
    return this.#clear(runner)
  }

  noteLoss(): void {
    this.#channel.noteLoss()
  }

  /** Waits for the pending calls, which the deadline bounds. No call follows. */
  async close(): Promise<void> {
    await this.#guard.close()
    this.#isClosed = true
    await Promise.all([...this.#sessions].map((session) => session.close()))
    await this.#channel.close()
  }

  /** A connection that is free, or a new one. */
  async #take(): Promise<WatchSession> {
    for (;;) {
      const ready = this.#idle.findLastIndex(({ isReady }) => isReady)
      if (ready >= 0) return this.#idle.splice(ready, 1)[0]!
      if (this.#sessions.size < MOST_SESSIONS) return this.#openSession()
      const other = this.#idle.pop()
      if (other !== undefined) return other
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }

  #openSession(): WatchSession {
    const session = this.#open()
    this.#sessions.add(session)
    return session
  }
}
