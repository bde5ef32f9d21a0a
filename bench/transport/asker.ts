import { Echo } from './echo.js'

/** The asking side of a transport: a `RingClient` is one. */
export interface Transport {
  looks: number
  isListening: boolean
  readonly isFull: boolean
  readonly isEmpty: boolean
  readonly unsent: number
  put(echo: Echo): void
  send(): boolean
  settle(): number
  nextAnswer(): Promise<unknown> | undefined
  stopWaiting(): void
}

/** As `engines/pool.ts` has them. */
const LOOKS = 5
const SEND_AFTER = 16

/** Asks by a transport, and hears of the answers, as `engines/pool.ts` does with one thread, without what it does beyond. */
export class Asker {
  readonly #transport: Transport
  #isFlushing = false

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** @throws Error where more is asked at the same time than there is room for */
  ask(first: number): Promise<void> {
    if (this.#transport.isFull) throw new Error('no room for one more request')
    const echo = new Echo(first)
    this.#transport.put(echo)
    if (this.#transport.unsent >= SEND_AFTER) this.#transport.send()
    if (!this.#isFlushing) {
      this.#isFlushing = true
      queueMicrotask(() => this.#flush())
    }
    return echo.promise
  }

  #flush(): void {
    this.#isFlushing = false
    if (this.#transport.unsent > 0) this.#transport.send()
    this.#listen()
  }

  #listen(): void {
    const transport = this.#transport
    if (transport.isListening || transport.isEmpty) return
    transport.isListening = true
    const next = transport.looks > 0 ? undefined : transport.nextAnswer()
    if (next === undefined) setImmediate(() => this.#hear())
    else void next.then(() => this.#hear())
  }

  #hear(): void {
    const transport = this.#transport
    transport.isListening = false
    transport.stopWaiting()
    transport.looks = transport.settle() > 0 ? LOOKS : transport.looks - 1
    this.#listen()
  }
}
