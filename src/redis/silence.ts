/** A connection is silent if nothing has arrived for this long after a request. */
const SHORTEST_MS = 1_000

/**
 * Notices a connection that is of no use though nobody has closed it: a network that loses everything, a firewall
 * that has forgotten the connection. TCP itself gives up only after many minutes.
 */
export class Silence {
  readonly #longestMs: number
  /** When the first of the requests went out that have had no reply. */
  #sinceMs: number | undefined

  /** @param deadlineMs of a request. A connection may be silent for two of them, and for a second. */
  constructor(deadlineMs: number) {
    this.#longestMs = Math.max(SHORTEST_MS, 2 * deadlineMs)
  }

  /** A request goes out, or waits for the connection. */
  begin(nowMs: number): void {
    this.#sinceMs ??= nowMs
  }

  /** Something has arrived, or the connection is another one now. */
  end(): void {
    this.#sinceMs = undefined
  }

  isTooLong(nowMs: number): boolean {
    return this.#sinceMs !== undefined && nowMs - this.#sinceMs >= this.#longestMs
  }
}
