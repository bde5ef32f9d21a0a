/** Hears of the answered calls of stores: of which limiter, of which store, and how long each took. */
export type StoreCallListener = (limiter: object, store: string, ms: number) => void

const listeners = new Set<StoreCallListener>()

/** Whether anybody hears of calls. Else a pool times none. */
export const hearsStoreCalls = (): boolean => listeners.size > 0

export function tellStoreCall(limiter: object, store: string, ms: number): void {
  for (const listener of listeners) listener(limiter, store, ms)
}

/** Returns a function that ends it. */
export function onStoreCall(listener: StoreCallListener): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** The limiters that decide for one that has several, such as those of a middleware's routes. */
export const DECIDERS = Symbol('millrace deciders')
