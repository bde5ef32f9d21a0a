// Limiters of another thread, called as if they were here: every call and every read of a property is sent to
// the thread and waits for its reply. Objects with methods stay there, and a stand-in takes their place here.
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { type Limiter, MillraceError, MillraceLimited } from 'millrace'

/** A value on its way between the threads. */
export type Sent =
  | { readonly plain: unknown }
  | { readonly list: readonly Sent[] }
  | { readonly fields: readonly (readonly [string, Sent])[] }
  /** An object with methods, by its number in the other thread. */
  | { readonly object: number }
  | { readonly promise: number }

/** The objects that the thread has from the start. */
export const LIBRARY = 0

export interface Call {
  /** The number of the object. */
  readonly object: number
  /** Without arguments: reads the property. */
  readonly property: string
  readonly args?: readonly Sent[]
}

/** What a call has thrown, or a promise was rejected with: an error of Millrace, by its fields, or a value. */
export type Thrown =
  | {
      readonly error: 'MillraceError' | 'MillraceLimited'
      readonly fields: readonly (readonly [string, Sent])[]
    }
  | { readonly value: Sent }

export type Reply = { readonly value: Sent } | { readonly isMethod: true } | { readonly thrown: Thrown }
export type Settled = { readonly promise: number } & ({ readonly value: Sent } | { readonly thrown: Thrown })

/** Whether a value has no prototype of its own, so that a copy of it is as good. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** The most time that a call takes, even on a busy machine. */
const MAX_CALL_MS = 30_000

/** What the thread exports: parts of the library. */
export interface Library {
  attachLimiter(share: unknown): Limiter
  createLimiter(options: object): Limiter
  group(members: object): object
  abortController(): AbortController
}

export class OtherThread {
  readonly library: Library
  readonly #worker: Worker
  readonly #signal = new Int32Array(new SharedArrayBuffer(4))
  readonly #calls = new MessageChannel()
  readonly #pending = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>()
  readonly #numbers = new WeakMap<object, number>()

  constructor() {
    const { port1, port2 } = this.#calls
    const workerData = { port: port2, signal: this.#signal }
    const url = new URL('./thread-worker.js', import.meta.url)
    this.#worker = new Worker(url, { workerData, transferList: [port2] })
    this.#worker.on('message', (settled: Settled) => this.#settle(settled))
    this.#worker.unref()
    port1.unref()
    this.library = this.#standIn(LIBRARY) as Library
  }

  async end(): Promise<void> {
    await this.#worker.terminate()
  }

  #call(call: Call): unknown {
    const { port1 } = this.#calls
    Atomics.store(this.#signal, 0, 0)
    port1.postMessage(call)
    // The notification of the call before may come late, and end this wait before there is a reply.
    while (Atomics.load(this.#signal, 0) === 0) {
      if (Atomics.wait(this.#signal, 0, 0, MAX_CALL_MS) === 'timed-out')
        throw new Error(`no reply: ${call.property}`)
    }
    const { message } = receiveMessageOnPort(port1) as { message: Reply }
    if ('thrown' in message) throw this.#thrownBy(message.thrown)
    if ('value' in message) return this.#receive(message.value)
    return (...args: unknown[]) => this.#call({ ...call, args: args.map((arg) => this.#send(arg)) })
  }

  #settle(settled: Settled): void {
    const pending = this.#pending.get(settled.promise)!
    this.#pending.delete(settled.promise)
    if (this.#pending.size === 0) this.#worker.unref()
    if ('thrown' in settled) pending.reject(this.#thrownBy(settled.thrown))
    else pending.resolve(this.#receive(settled.value))
  }

  #send(value: unknown): Sent {
    const object = typeof value === 'object' && value !== null ? this.#numbers.get(value) : undefined
    if (object !== undefined) return { object }
    if (Array.isArray(value)) return { list: value.map((each) => this.#send(each)) }
    if (value instanceof AbortSignal) return this.#sendSignal(value)
    if (!isPlainObject(value)) return { plain: value }
    return { fields: Object.entries(value).map(([name, each]) => [name, this.#send(each)] as const) }
  }

  #sendSignal(signal: AbortSignal): Sent {
    const controller = this.library.abortController()
    if (signal.aborted) controller.abort(signal.reason)
    signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true })
    return this.#send(controller.signal)
  }

  #receive(sent: Sent): unknown {
    if ('plain' in sent) return sent.plain
    if ('list' in sent) return sent.list.map((each) => this.#receive(each))
    if ('fields' in sent)
      return Object.fromEntries(sent.fields.map(([name, each]) => [name, this.#receive(each)]))
    if ('object' in sent) return this.#standIn(sent.object)
    this.#worker.ref()
    return new Promise((resolve, reject) => this.#pending.set(sent.promise, { resolve, reject }))
  }

  #standIn(object: number): object {
    const proxy = new Proxy(
      {},
      {
        get: (_, property) => {
          if (typeof property === 'symbol' || property === 'then') return undefined
          return this.#call({ object, property })
        },
      },
    )
    this.#numbers.set(proxy, object)
    return proxy
  }

  #thrownBy(thrown: Thrown): unknown {
    if ('value' in thrown) return this.#receive(thrown.value)
    const { prototype } = thrown.error === 'MillraceError' ? MillraceError : MillraceLimited
    return Object.assign(Object.create(prototype), this.#receive({ fields: thrown.fields }))
  }
}
