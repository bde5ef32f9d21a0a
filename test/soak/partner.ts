import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Report, SharedSoak } from './side.js'

/** A message from the main thread to the worker. */
export type Order =
  | { readonly name: 'go'; readonly ends: readonly number[] }
  | { readonly name: 'rest' }
  | { readonly name: 'end' }

/** The main thread's handle of the soak's worker, which rests until it is started. */
export class Partner {
  readonly #worker: Worker
  #broken: Error | undefined

  static async start(soak: SharedSoak): Promise<Partner> {
    const partner = new Partner(soak)
    await partner.#report()
    return partner
  }

  private constructor(soak: SharedSoak) {
    this.#worker = new Worker(new URL('./worker.js', import.meta.url), { workerData: soak })
    this.#worker.on('error', (error) => {
      this.#broken = error
    })
  }

  go(ends: readonly number[]): void {
    if (this.#broken !== undefined) throw this.#broken
    this.#send({ name: 'go', ends })
  }

  rest(): Promise<Report> {
    return this.#ask({ name: 'rest' })
  }

  async end(): Promise<Report> {
    const exited = once(this.#worker, 'exit')
    const report = await this.#ask({ name: 'end' })
    await exited
    return report
  }

  #ask(order: Order): Promise<Report> {
    if (this.#broken !== undefined) throw this.#broken
    const report = this.#report()
    this.#send(order)
    return report
  }

  async #report(): Promise<Report> {
    const [report] = await once(this.#worker, 'message')
    return report as Report
  }

  #send(order: Order): void {
    this.#worker.postMessage(order)
  }
}
