import { setEnvironmentData, type Worker } from 'node:worker_threads'
import { type AT_START, type Inside, NOW, numberOf, ORDER_WORDS, ORDERS, STEPS, TAKEN } from './order.js'

/** The threads that this process starts, and their ends. */
export class Killer {
  readonly living: Worker[] = []
  /** Threads that have ended. */
  deaths = 0
  readonly #onStart: ((worker: Worker) => void)[] = []
  readonly #orders = new Int32Array(new SharedArrayBuffer(4 * ORDER_WORDS))
  readonly #register = (worker: Worker): void => this.#add(worker)

  constructor() {
    setEnvironmentData(ORDERS, this.#orders.buffer as SharedArrayBuffer)
    process.on('worker', this.#register)
  }

  close(): void {
    process.off('worker', this.#register)
    setEnvironmentData(ORDERS, undefined)
  }

  /** How many have been taken. */
  get orders(): number {
    return Atomics.load(this.#orders, TAKEN)
  }

  /** The thread that decides next dies by its own hand, `steps` later; whichever starts next, at once. */
  order(manner: Inside, steps: number, place: typeof NOW | typeof AT_START = NOW): void {
    Atomics.store(this.#orders, STEPS, steps)
    Atomics.store(this.#orders, place, numberOf(manner))
  }

  nextStart(): Promise<Worker> {
    return new Promise((resolve) => this.#onStart.push(resolve))
  }

  #add(worker: Worker): void {
    this.living.push(worker)
    worker.once('exit', () => {
      this.deaths++
      this.living.splice(this.living.indexOf(worker), 1)
    })
    for (const resolve of this.#onStart.splice(0)) resolve(worker)
  }
}
