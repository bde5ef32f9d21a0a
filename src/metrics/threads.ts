// The numbers of other threads. Each thread counts what it decides, and Prometheus asks the main thread alone.

import { randomUUID } from 'node:crypto'
import { BroadcastChannel } from 'node:worker_threads'
import { clearTimeout, setTimeout } from '../core/real-timers.js'
import { METRICS } from './metric-table.js'
import type { Samples } from './series.js'

const CHANNEL = 'millrace/metrics'
/** A thread that has not answered within this time is left out until it does. */
const ANSWER_WITHIN_MS = 1_000

type Message =
  /** The main thread wants to know which threads there are. */
  | { readonly kind: 'who' }
  /** The main thread asks for numbers. */
  | { readonly kind: 'ask'; readonly ask: string }
  | { readonly kind: 'here'; readonly from: string }
  | { readonly kind: 'counts'; readonly from: string; readonly ask?: string; readonly samples: Samples }
  /** A thread ends, or has no limiter any more. */
  | { readonly kind: 'gone'; readonly from: string }

interface Channel {
  post(message: Message): void
  /** What has been posted is delivered nevertheless. */
  close(): void
}

/** @param hear is called for each message of other threads */
function openChannel(hear: (message: Message) => void): Channel {
  const channel = new BroadcastChannel(CHANNEL)
  channel.onmessage = ({ data }: { data?: unknown } & object) => hear(data as Message)
  channel.unref()
  return { post: (message) => channel.postMessage(message), close: () => channel.close() }
}

/** In a thread that is not the main one: answers the main thread. Returns a function that sends the last numbers. */
export function joinMainThread(read: () => Promise<Samples>): (last: Samples) => void {
  const from = randomUUID()
  let isHere = true
  const { post, close } = openChannel((message) => {
    if (message.kind === 'who') post({ kind: 'here', from })
    if (message.kind === 'ask')
      void read().then((samples) => {
        // The reading may have found that the last limiter is closed.
        if (isHere) post({ kind: 'counts', from, ask: message.ask, samples })
      })
  })
  const leave = () => {
    isHere = false
    post({ kind: 'gone', from })
    close()
  }
  process.once('exit', leave)
  post({ kind: 'here', from })
  return (samples) => {
    process.removeListener('exit', leave)
    post({ kind: 'counts', from, samples })
    leave()
  }
}

/** In the main thread: the numbers of the other threads. What a thread had counted stays when it has ended. */
export class ThreadCounts {
  readonly #counts = new Map<string, Samples>()
  /** The threads that answer. */
  readonly #live = new Set<string>()
  /** By the id of a question: the threads that have not answered. */
  readonly #asked = new Map<string, { readonly missing: Set<string>; readonly done: () => void }>()
  readonly #channel = openChannel((message) => this.#hear(message))

  constructor() {
    this.#channel.post({ kind: 'who' })
  }

  async read(): Promise<Samples[]> {
    if (this.#live.size > 0) await this.#ask()
    return [...this.#counts].map(([from, samples]) => (this.#live.has(from) ? samples : countersIn(samples)))
  }

  async #ask(): Promise<void> {
    const ask = randomUUID()
    const missing = new Set(this.#live)
    let late: NodeJS.Timeout | undefined
    await new Promise<void>((done) => {
      late = setTimeout(done, ANSWER_WITHIN_MS)
      this.#asked.set(ask, { missing, done })
      this.#channel.post({ kind: 'ask', ask })
    })
    clearTimeout(late)
    this.#asked.delete(ask)
    for (const from of missing) this.#live.delete(from)
  }

  #hear(message: Message): void {
    if (message.kind === 'who' || message.kind === 'ask') return
    const { kind, from } = message
    if (kind === 'gone') this.#live.delete(from)
    else this.#live.add(from)
    if (kind === 'counts') this.#counts.set(from, message.samples)
    for (const [ask, { missing, done }] of this.#asked) {
      if (kind === 'gone' || (kind === 'counts' && message.ask === ask)) missing.delete(from)
      if (missing.size === 0) done()
    }
  }
}

/** Without what is of the present. */
function countersIn(samples: Samples): Samples {
  const kept = METRICS.filter(({ kind }) => kind !== 'gauge').map(({ name }) => [name, samples[name] ?? []])
  return Object.fromEntries(kept)
}
