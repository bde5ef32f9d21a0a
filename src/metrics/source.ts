import { isMainThread } from 'node:worker_threads'
import { onStoreCall } from '../core/store-calls.js'
import { METRICS, type Metric, type Sample, STORE_DURATION } from './metric-table.js'
import { checkLimiters, decidersOf, type Registered } from './registered.js'
import { AllSeries, type Samples } from './series.js'
import type { Labels } from './stats.js'
import { joinMainThread, ThreadCounts } from './threads.js'

/** Hears of each call of a store, with the labels that it counts by. */
export type CallListener = (labels: Labels, ms: number) => void

/** The limiters whose numbers go to one registry or one meter. */
export class Source {
  readonly #registered = new Map<string, Registered>()
  readonly #series = new AllSeries()
  /** Under which names the limiters are registered that call stores; undefined: they are not. */
  #callers = new WeakMap<object, Registered | undefined>()
  readonly #threads = isMainThread ? new ThreadCounts() : undefined
  readonly #joins: boolean
  /** Called with each call of a store. */
  onCall: CallListener = () => {}
  #endCalls = () => {}
  #leave: ((last: Samples) => void) | undefined
  #reading: Promise<Samples[]> | undefined

  /** @param joins whether this thread hands its numbers to the main thread, if it is another one */
  constructor(joins: boolean) {
    this.#joins = joins && !isMainThread
  }

  /**
   * Adds limiters, and returns a function that takes them out again.
   * @throws MillraceError `ERR_MILLRACE_INVALID_OPTION`: then none has been added
   */
  add(limiters: unknown): () => Promise<void> {
    const added = checkLimiters(limiters, this.#registered)
    if (added.length > 0 && this.#registered.size === 0) {
      this.#endCalls = onStoreCall((...call) => this.#noteCall(...call))
      if (this.#joins) this.#leave = joinMainThread(() => this.#readOwn())
    }
    for (const each of added) this.#registered.set(each.name, each)
    this.#callers = new WeakMap()
    return async () => {
      const last = this.#leave === undefined ? {} : await this.#readOwn()
      for (const each of added) this.#remove(each, last)
    }
  }

  /** The values of a metric. All metrics of one scrape are read together. */
  async samplesOf(metric: Metric): Promise<Sample[]> {
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined
    })
    return this.#series.of(metric, await this.#reading)
  }

  async #readAll(): Promise<Samples[]> {
    const [own, others] = await Promise.all([this.#readOwn(), this.#threads?.read() ?? []])
    return [own, ...others]
  }

  async #readOwn(): Promise<Samples> {
    const all = await Promise.all([...this.#registered.values()].map((each) => this.#read(each)))
    return Object.fromEntries(
      METRICS.map(({ name }, i) => [name, all.flatMap((samples) => samples[i] ?? [])]),
    )
  }

  /** A limiter that has been closed is registered no more. */
  async #read(registered: Registered): Promise<readonly (readonly Sample[])[]> {
    const samples = await registered.read()
    if (samples === undefined) this.#remove(registered)
    return samples ?? []
  }

  #noteCall(limiter: object, store: string, ms: number): void {
    if (!this.#callers.has(limiter)) this.#callers.set(limiter, this.#registeredFor(limiter))
    const registered = this.#callers.get(limiter)
    if (registered === undefined) return
    registered.record(store, ms)
    this.onCall(this.#series.labelsOf(STORE_DURATION, { limiter: registered.name, store }), ms)
  }

  #registeredFor(limiter: object): Registered | undefined {
    return [...this.#registered.values()].find((each) => [...decidersOf(each.counting)].includes(limiter))
  }

  #remove(registered: Registered, last: Samples = {}): void {
    const { name } = registered
    if (this.#registered.get(name) !== registered) return
    this.#registered.delete(name)
    this.#callers = new WeakMap()
    if (this.#registered.size > 0) return
    this.#endCalls()
    this.#leave?.(last)
    this.#leave = undefined
  }
}
