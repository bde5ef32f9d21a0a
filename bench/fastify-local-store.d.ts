// The package's types stop at its plugin; this is what its plugin calls.
declare module '@fastify/rate-limit/store/LocalStore.js' {
  export default class LocalStore {
    /** `cache`: how many keys are kept, those used last. */
    constructor(continueExceeding: boolean, exponentialBackoff: boolean, cache?: number)
    /** Answers before it returns. */
    incr(
      key: string,
      callback: (error: Error | null, result: { current: number; ttl: number }) => void,
      timeWindowMs: number,
      max: number,
    ): void
    /** The same without a hit. */
    read: LocalStore['incr']
    /** The store of a route. */
    child(routeOptions: {
      continueExceeding?: boolean
      exponentialBackoff?: boolean
      cache?: number
    }): LocalStore
  }
}
