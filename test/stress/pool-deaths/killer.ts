import { setEnvironmentData, type Worker } from 'node:worker_threads'
import { type AT_START, type Inside, NOW, numberOf, ORDER_WORDS, ORDERS, STEPS, TAKEN } from './order.js'

/** Tracks the threads of this process and orders their deaths. */
export class Killer {
  readonly living: Worker[] = []
  /** The number of ended threads. */
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

  /** The number of orders that threads have taken. */
  get orders(): number {
    return Atomics.load(this.#orders, TAKEN)
  }

  /**
   * Orders a death: of the next thread that decides, after `steps` steps; or of the next that starts, at
   * once.
   */
  order(manner: Inside, steps: number, index: typeof NOW | typeof AT_START = NOW): void {
    Atomics.store(this.#orders, STEPS, steps)
    Atomics.store(this.#orders, index, numberOf(manner))
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
