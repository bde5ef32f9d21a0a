import { isMainThread } from 'node:worker_threads'
import { invalid } from '../core/errors.js'
import { type CallListener, Collection } from './collection.js'
import type { Metric, Sample } from './metric-table.js'
import { AllSeries, type Samples } from './series.js'
import type { Counting } from './stats.js'
import { ofThisThread, ThreadCounts } from './threads.js'

/** In the main thread, for all of its registries. */
let threads: ThreadCounts | undefined

/** The limiters whose numbers go to one registry or one meter. */
export class Source {
  readonly #own = new Collection()
  readonly #series = new AllSeries()
  /** What hands the numbers to the main thread, if this is another one. */
  readonly #joined: Pick<Collection, 'add' | 'end'> | undefined
  #reading: Promise<readonly Samples[]> | undefined

  /** @param joins whether this thread hands its numbers to the main thread, if it is another one */
  constructor(joins: boolean) {
    this.#joined = joins && !isMainThread ? ofThisThread() : undefined
    if (isMainThread) threads ??= new ThreadCounts()
  }

  /** Is called with each call of a store. */
  set onCall(listener: CallListener) {
    this.#own.onCall = listener
  }

  /**
   * Adds limiters, and returns a function that takes them out again.
   * @throws MillraceError `ERR_MILLRACE_INVALID_OPTION`: then none has been added
   */
  add(limiters: unknown): () => Promise<void> {
    const added = checkLimiters(limiters, this.#own)
    const places = this.#joined === undefined ? [this.#own] : [this.#own, this.#joined]
    for (const [name, counting] of added) for (const place of places) place.add(name, counting)
    let end: Promise<unknown> | undefined
    return async () => {
      end ??= Promise.all(added.flatMap((each) => places.map((place) => place.end(...each))))
      await end
    }
  }

  /** The values of a metric. All metrics of one scrape are read together. */
  async samplesOf(metric: Metric): Promise<Sample[]> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    return this.#series.of(metric, await this.#reading)
  }

  async #read(): Promise<readonly Samples[]> {
    const [others] = await Promise.all([threads?.read() ?? [], this.#own.read()])
    return [this.#own.present(), ...others]
  }
}

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
function checkLimiters(limiters: unknown, present: Collection): readonly [name: string, Counting][] {
  if (typeof limiters !== 'object' || limiters === null || Array.isArray(limiters))
    throw invalid(
      'limiters',
      limiters,
      'an object with the limiters by their names, such as { api: limiter }',
    )
  const entries = Object.entries(limiters)
  for (const [name, limiter] of entries) {
    const option = `limiters.${name}`
    if (typeof limiter?.stats !== 'function')
      throw invalid(option, limiter, 'a limiter, or another object that has stats()')
    if (present.has(name)) throw invalid(option, name, 'a name that is not registered yet')
  }
  return entries
}
