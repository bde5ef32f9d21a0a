// The numbers of other threads. Each thread counts what it decides, and Prometheus asks the main thread alone.

import { randomUUID } from 'node:crypto'
import { BroadcastChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { clearTimeout, setTimeout } from '../core/real-timers.js'
import { Collection } from './collection.js'
import { AllSeries, countersIn, type Samples, Totals } from './series.js'
import type { Counting } from './stats.js'

const CHANNEL = 'millrace/metrics'
/** A thread that has not answered within this time is left out until it does. */
const ANSWER_WITHIN_MS = 1_000

type Message =
  /** The main thread wants to know which threads there are. */
  | { readonly kind: 'who' }
  /** The main thread asks for numbers. */
  | { readonly kind: 'ask'; readonly ask: string }
  /** The main thread has not heard of a thread, and has added these counters of it to those of ended threads. */
  | { readonly kind: 'left out'; readonly from: string; readonly counters: Samples }
  | { readonly kind: 'here'; readonly from: string }
  | { readonly kind: 'counts'; readonly from: string; readonly ask?: string; readonly samples: Samples }
  /** A thread ends, or has no limiter any more. */
  | { readonly kind: 'gone'; readonly from: string }

/** Messages to all other threads. */
class Channel {
  readonly #port = new BroadcastChannel(CHANNEL)
  readonly #hear: (message: Message) => void

  /** @param hear is called for each message of other threads */
  constructor(hear: (message: Message) => void) {
    this.#hear = hear
    this.#port.onmessage = ({ data }: { data?: unknown } & object) => hear(data as Message)
    this.#port.unref()
  }

  post(message: Message): void {
    this.#port.postMessage(message)
  }

  /** Hears what has arrived already: the event loop may come to it later. Deno can't do so. */
  hearNow(): void {
    if ('Deno' in globalThis) return
    const port = this.#port as unknown as MessagePort
    for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port))
      this.#hear(next.message)
  }

  /** What has been posted is delivered nevertheless. */
  close(): void {
    this.#port.close()
  }
}

/** All that is registered in a thread that is not the main one. Answers the main thread. */
class ThisThread {
  readonly #all = new Collection()
  #channel: Channel | undefined
  /** Another one after each time that counters were handed over: numbers count from then on. */
  #id = ''
  readonly #leave = (): void => {
    this.#channel?.hearNow()
    this.#all.readNow()
    this.#part()
  }

  add(name: string, counting: Counting): void {
    this.#all.add(name, counting)
    if (this.#channel !== undefined) return
    this.#channel = new Channel((message) => this.#hear(message))
    process.once('exit', this.#leave)
    this.#arrive()
  }

  async end(name: string, counting: Counting): Promise<void> {
    await this.#all.end(name, counting)
    if (this.#all.isEmpty) this.#part()
    else await this.#answer()
  }

  #hear(message: Message): void {
    if (message.kind === 'who') this.#channel?.post({ kind: 'here', from: this.#id })
    if (message.kind === 'ask') void this.#answer(message.ask)
    if (message.kind === 'left out' && message.from === this.#id) {
      this.#all.handOver(message.counters)
      this.#arrive()
      void this.#answer()
    }
  }

  #arrive(): void {
    this.#id = randomUUID()
    this.#channel?.post({ kind: 'here', from: this.#id })
  }

  async #answer(ask?: string): Promise<void> {
    await this.#all.read()
    const message = { kind: 'counts', from: this.#id, samples: this.#all.present() } as const
    this.#channel?.post(ask === undefined ? message : { ...message, ask })
  }

  /** The last numbers, which are handed over. */
  #part(): void {
    const channel = this.#channel
    if (channel === undefined) return
    const samples = this.#all.present()
    process.removeListener('exit', this.#leave)
    channel.post({ kind: 'counts', from: this.#id, samples })
    channel.post({ kind: 'gone', from: this.#id })
    this.#all.handOver(countersIn(samples))
    channel.close()
    this.#channel = undefined
  }
}

let thisThread: ThisThread | undefined

/** What hands the numbers of this thread to the main thread, whichever registries it has. */
export function ofThisThread(): Pick<Collection, 'add' | 'end'> {
  thisThread ??= new ThisThread()
  return thisThread
}

/** Calls back when it is too late for an answer. Returns a function that ends it. */
type Deadline = (late: () => void) => () => void

const inTime: Deadline = (late) => {
  const timer = setTimeout(late, ANSWER_WITHIN_MS)
  return () => clearTimeout(timer)
}

/** In the main thread: the numbers of the other threads. What a thread had counted stays when it has ended. */
export class ThreadCounts {
  /** The last numbers of the threads that answer. */
  readonly #live = new Map<string, Samples>()
  /** Of all others: one sum, however many threads there were. */
  readonly #ended = new Totals(new AllSeries(), true)
  readonly #deadline: Deadline
  /** The threads that have not answered the present question. */
  #asked: { readonly ask: string; readonly missing: Set<string>; readonly done: () => void } | undefined
  #reading: Promise<readonly Samples[]> | undefined
  readonly #channel = new Channel((message) => this.#hear(message))

  constructor(deadline = inTime) {
    this.#deadline = deadline
    this.#channel.post({ kind: 'who' })
  }

  /** The numbers of the threads that answer, and those of all that have ended. */
  read(): Promise<readonly Samples[]> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  close(): void {
    this.#channel.close()
  }

  async #read(): Promise<readonly Samples[]> {
    this.#channel.hearNow()
    if (this.#live.size > 0) await this.#ask()
    return [...this.#live.values(), this.#ended.present()]
  }

  async #ask(): Promise<void> {
    const ask = randomUUID()
    const missing = new Set(this.#live.keys())
    let met = () => {}
    await new Promise<void>((done) => {
      met = this.#deadline(done)
      this.#asked = { ask, missing, done }
      this.#channel.post({ kind: 'ask', ask })
    })
    met()
    this.#asked = undefined
    for (const from of missing) this.#channel.post({ kind: 'left out', from, counters: this.#fold(from) })
  }

  #hear(message: Message): void {
    if (message.kind === 'here' && !this.#live.has(message.from)) this.#live.set(message.from, {})
    if (message.kind === 'counts' && this.#live.has(message.from))
      this.#live.set(message.from, message.samples)
    if (message.kind === 'gone') this.#fold(message.from)
    if (this.#asked === undefined || !('from' in message)) return
    const { ask, missing, done } = this.#asked
    if (message.kind === 'gone' || (message.kind === 'counts' && message.ask === ask))
      missing.delete(message.from)
    if (missing.size === 0) done()
  }

  /** Keeps the counters of a thread that answers no more. */
  #fold(from: string): Samples {
    const counters = countersIn(this.#live.get(from) ?? {})
    this.#live.delete(from)
    this.#ended.add(counters)
    return counters
  }
}
