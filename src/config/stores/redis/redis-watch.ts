// How a store on Redis learns what other processes change: by messages, and by the revision if one was lost.
import type { ConfigChange } from '../../config-store.js'
import { pause } from '../../deadline.js'
import { storeError } from '../../document-store.js'
import type { Subscriber } from './client-parts.js'
import { subscriberLike } from './redis-client.js'
import type { RedisCommands } from './redis-commands.js'
import type { RedisNames } from './redis-script.js'

/** The longest pause before the next attempt to connect. */
const LONGEST_PAUSE_MS = 500
/** A message may take so long after the revision that it tells. */
const MESSAGE_MS = 500

export class RedisWatch {
  readonly #commands: RedisCommands
  readonly #names: RedisNames
  readonly #pollMs: number
  readonly #tell: (change: ConfigChange) => void
  #session: Session | undefined

  constructor(
    commands: RedisCommands,
    names: RedisNames,
    pollMs: number,
    tell: (change: ConfigChange) => void,
  ) {
    this.#commands = commands
    this.#names = names
    this.#pollMs = pollMs
    this.#tell = tell
  }

  start(): void {
    this.#session = new Session(this.#commands, this.#names, this.#pollMs, this.#tell)
  }

  stop(): void {
    this.#session?.end()
    this.#session = undefined
  }
}

/** From the first listener until there is none. */
class Session {
  readonly #commands: RedisCommands
  readonly #names: RedisNames
  readonly #tell: (change: ConfigChange) => void
  readonly #timer: NodeJS.Timeout
  #isEnded = false
  /** Whether listeners have been told of a fault that has not been told to be over. */
  #isFaulty = false
  /** The connection with the subscription. Undefined while there is none. */
  #subscriber: Subscriber | undefined
  /** All changes up to this revision have been told. Undefined until it has been asked for. */
  #revision: number | undefined
  #losses = 0
  #isPolling = false
  #isWanted = false

  constructor(
    commands: RedisCommands,
    names: RedisNames,
    pollMs: number,
    tell: (change: ConfigChange) => void,
  ) {
    this.#commands = commands
    this.#names = names
    this.#tell = tell
    this.#timer = setInterval(() => void this.#poll(), pollMs).unref()
    void this.#listen()
  }

  end(): void {
    this.#isEnded = true
    clearInterval(this.#timer)
    this.#subscriber?.disconnect()
  }

  /** Keeps a subscription, by one connection after the other. */
  async #listen(): Promise<void> {
    for (let attempts = 0; !this.#isEnded; attempts++) {
      let error: unknown
      try {
        const subscriber = await this.#subscribe((reason) => {
          error = reason
        })
        attempts = 0
        await this.#follow(subscriber)
      } catch (reason) {
        error ??= reason
      }
      if (this.#isEnded) return
      this.#fail(error ?? new Error('the connection of the subscription was lost'))
      await pause(Math.min(50 * attempts, LONGEST_PAUSE_MS) * (0.5 + 0.5 * Math.random()))
    }
  }

  /** Connects. The reason of a failure comes by an event of the client. */
  async #subscribe(note: (reason: unknown) => void): Promise<Subscriber> {
    let subscriber: Subscriber | undefined
    try {
      await this.#commands.within(async (call) => {
        if (this.#commands.client.isCluster) await this.#commands.ready(call) // then it knows its nodes
        if (call.isOver || this.#isEnded) return
        subscriber = subscriberLike(this.#commands.client)
        subscriber.on('error', note)
        subscriber.on('connect', () => subscriber?.stream?.unref?.()) // it does not keep the process alive
        subscriber.on('message', (_, message) => this.#receive(String(message)))
        await subscriber.connect()
        await subscriber.subscribe(this.#names.channel)
      })
    } catch (error) {
      subscriber?.disconnect()
      throw error
    }
    if (subscriber === undefined || this.#isEnded) {
      subscriber?.disconnect()
      throw new Error('the watch has ended')
    }
    return subscriber
  }

  /** Resolves when the connection is lost. */
  async #follow(subscriber: Subscriber): Promise<void> {
    const lost = new Promise<void>((resolve) => void subscriber.on('end', () => resolve()))
    this.#subscriber = subscriber
    this.#revision = undefined // what has changed before the subscription is not known
    void this.#poll(true)
    await lost
    this.#subscriber = undefined
  }

  #receive(message: string): void {
    if (this.#isEnded) return
    const space = message.indexOf(' ')
    const revision = Number(message.slice(0, space))
    const known = this.#revision
    // An earlier one was on its way when the revision was asked for, or the server has begun again: `#poll` finds that.
    if (known !== undefined && revision > known) this.#revision = revision
    const hasGap = known !== undefined && revision > known + 1
    this.#tell(hasGap ? {} : { keys: [message.slice(space + 1)] })
  }

  /**
   * Compares the revision with that of the last message.
   * @param isNew whether to ask again, if it is being asked for already
   */
  async #poll(isNew = false): Promise<void> {
    this.#isWanted ||= isNew
    if (this.#isPolling || this.#isEnded) return
    this.#isPolling = true
    this.#isWanted = false
    try {
      const known = this.#revision
      const subscriber = this.#subscriber
      const { losses } = this.#commands
      const current = await this.#askRevision()
      if (this.#isEnded || subscriber === undefined || subscriber !== this.#subscriber) return
      // A server that has taken the place of another one may have lost changes.
      const isOther = losses !== this.#losses || (known !== undefined && current < known)
      this.#losses = losses
      if (known === undefined || this.#isFaulty || isOther) return this.#recover(current)
      if (current > (this.#revision ?? 0)) await this.#await(current, subscriber)
    } catch (error) {
      if (!this.#isEnded) this.#fail(error)
    } finally {
      this.#isPolling = false
      if (this.#isWanted) void this.#poll()
    }
  }

  async #askRevision(): Promise<number> {
    const revision = await this.#commands.within((call) =>
      this.#commands.send(call, 'GET', this.#names.revision),
    )
    return Number(revision ?? 0)
  }

  #recover(revision: number): void {
    this.#isFaulty = false
    this.#revision = revision
    this.#tell({})
  }

  /** The message of this revision should be on its way. Otherwise the subscription is of no use any more. */
  async #await(revision: number, subscriber: Subscriber): Promise<void> {
    await pause(MESSAGE_MS)
    if (this.#isEnded || subscriber !== this.#subscriber || (this.#revision ?? 0) >= revision) return
    this.#recover(revision)
    subscriber.disconnect()
  }

  #fail(error: unknown): void {
    if (this.#isFaulty) return
    this.#isFaulty = true
    this.#tell({ error: storeError('redis', error) })
  }
}
