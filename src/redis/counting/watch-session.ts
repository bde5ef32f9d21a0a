import type { Command, RedisConnection } from '../clients/connection.js'
import { KEY_FAULT } from '../script-codes.js'
import type { CountingCall } from './counting-call.js'
import { decideLog } from './log-decision.js'
import { LogValue } from './log-value.js'

type Members = readonly (readonly [member: string, score: number])[]

/**
 * A connection for one transaction at a time. No other call may use it between WATCH and EXEC: EXEC would end the
 * watch of both.
 */
export class WatchSession {
  readonly #connection: RedisConnection
  /** The same connection. Its replies may wait for a replica. */
  readonly #writing: RedisConnection
  /** Counts connections. A watch ends with its connection, so EXEC must not go out by the next one. */
  #connected = 0
  #isWatching = false
  #isInUse = false
  readonly #waiting: (() => void)[] = []

  constructor(connection: RedisConnection, writing: RedisConnection) {
    this.#connection = connection
    this.#writing = writing
    connection.onReady(() => {
      this.#connected++
      this.#isWatching = false
      for (const resolve of this.#waiting.splice(0)) resolve()
    })
  }

  get isReady(): boolean {
    return this.#connection.isReady
  }

  /** Whether an attempt has begun and not ended. */
  get isInUse(): boolean {
    return this.#isInUse
  }

  /** Resolves when there is a connection. */
  async untilReady(): Promise<void> {
    if (!this.isReady) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  /**
   * Reads the keys of a call, decides, and writes if no key has changed since.
   * @param beforeExec called before EXEC goes out: from then on the server may have run the transaction
   * @returns the reply; undefined: another process has changed a key between WATCH and EXEC
   */
  async attempt(call: CountingCall, beforeExec: () => void): Promise<number[] | undefined> {
    this.#isInUse = true
    const reply = await this.#attempt(call, beforeExec)
    this.#isInUse = false
    return reply
  }

  /** Closes the connection, whatever it is in the middle of. */
  close(): Promise<void> {
    return this.#connection.close()
  }

  async #attempt(call: CountingCall, beforeExec: () => void): Promise<number[] | undefined> {
    const connected = this.#connected
    const values = await this.#read(call)
    const fault = values.find((value) => typeof value === 'number')
    if (fault !== undefined) return [fault]
    const logs = values as LogValue[]
    const reply = decideLog(call, logs)
    const writes = logs.flatMap((value) => value.commands(call.timeMs === 0))
    // A read of one key needs no EXEC. Reads of several keys are of one moment only if EXEC succeeds.
    if (writes.length === 0 && logs.length === 1) return reply
    if (this.#connected !== connected || !this.isReady)
      throw new Error('the connection was lost between WATCH and EXEC')
    if (writes.length > 0) beforeExec()
    return (await this.#write(call.names[0]!, writes)) ? reply : undefined
  }

  /** WATCH and all reads go out together. */
  async #read({ names, rules, limits, timeMs }: CountingCall): Promise<(LogValue | number)[]> {
    const first = names[0]!
    const send = (command: Command) => this.#connection.send(command, first)
    const watched = [...(this.#isWatching ? [send(['UNWATCH'])] : []), send(['WATCH', ...names])]
    this.#isWatching = true
    const time = send(['TIME'])
    const sets = names.map((name) => send(['ZRANGE', name, '0', '-1', 'WITHSCORES']).then(membersOf, faultOf))
    const [[seconds, micros], members] = await Promise.all([
      time as Promise<[string, string]>,
      Promise.all(sets),
      ...watched,
    ])
    const nowUs = timeMs > 0 ? timeMs * 1_000 : Number(seconds) * 1e6 + Number(micros)
    return names.map((name, i) => {
      const set = members[i]!
      const rule = rules[i]!
      return typeof set === 'number'
        ? set
        : LogValue.read(name, rule, limits?.[i] ?? rule.rule.limit, set, nowUs)
    })
  }

  /** Returns whether the transaction has run. */
  async #write(first: string, writes: readonly Command[]): Promise<boolean> {
    const commands: Command[] = [['MULTI'], ...writes, ['EXEC']]
    this.#isWatching = false
    const replies = await Promise.all(commands.map((command) => this.#writing.send(command, first)))
    const executed = replies.at(-1) as readonly unknown[] | null
    const failed = executed?.find((reply) => reply instanceof Error)
    if (failed !== undefined) throw new Error('a command of a transaction failed', { cause: failed })
    return executed !== null
  }
}

/** RESP2 lists members and scores in turn, RESP3 in pairs. */
function membersOf(reply: unknown): Members {
  const list = (reply as unknown[]).flat()
  const members: [string, number][] = []
  for (let i = 0; i < list.length; i += 2) members.push([String(list[i]), Number(list[i + 1])])
  return members
}

function faultOf(error: unknown): number {
  if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return KEY_FAULT.TYPE
  throw error
}
