/**
 * Hears of a limiter that closes, while its counts can still be read.
 * @param closed settles when its last decisions are counted; undefined: they are
 */
export type ClosingListener = (limiter: object, closed: Promise<unknown> | undefined) => void

const listeners = new Set<ClosingListener>()

export function tellClosing(limiter: object, closed?: Promise<unknown>): void {
  for (const listener of listeners) listener(limiter, closed)
}

/** Returns a function that ends it. */
export function onClosing(listener: ClosingListener): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** A method of what has `stats()` by a promise: the same, as it is known at this moment, also of what is closed. */
export const COUNTED = Symbol('millrace counted')

/** What `stats()` has, at once; undefined: an object of a user's own answers by promises alone. */
export function countedNow<S extends object>(counting: { stats(): S | PromiseLike<S> }): S | undefined {
  const counted = (counting as { [COUNTED]?(): S | undefined })[COUNTED]
  if (counted !== undefined) return counted.call(counting)
  const stats = counting.stats()
  if (!('then' in stats)) return stats
  Promise.resolve(stats).catch(() => {}) // the next reading fails, too, and is counted
  return undefined
}

/** By what `stats()` has returned: the memory whose counts it has, so that they are not added up. */
const memories = new WeakMap<object, string>()

/** Notes the memory, and returns the stats. */
export function ofMemory<S extends object>(stats: S, memory: string): S {
  memories.set(stats, memory)
  return stats
}

/** Undefined: there is none, or it is not known. */
export const memoryOf = (stats: object): string | undefined => memories.get(stats)
