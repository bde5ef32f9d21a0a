/** Counts of this thread's view of a configuration store. */
export interface ConfigStatistics {
  /** Keys whose policies, or whose lack of one, are cached. */
  readonly keys: number
  /** Different windows that keys count in, with those of the default. */
  readonly windows: number
  /** Reads of the store. */
  readonly loads: number
  /** Reads that failed, because the store did not answer or a document is no policy. */
  readonly failures: number
  /** Look-ups that got a policy older than its TTL, while it was read again or the store failed. */
  readonly stale: number
  /** Of the failures: documents that are no policies. */
  readonly invalid: number
  /** Times that a key got the default because the limiter has no room to count its policy. */
  readonly unfit: number
}
