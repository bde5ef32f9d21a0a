import type { ServersWatch } from './outage-watch.js'

/** Failures in a row that open the breaker. */
const MOST_FAILURES = 5
const SHORTEST_MS = 100
const LONGEST_MS = 1_000

/**
 * Spares requests to a server that does not answer. After five failures in a row no request is sent, for 100 ms
 * at first and up to 1 s, of which half is random, so that many nodes don't return at once. Then one request
 * goes out as a probe: its success closes the breaker, its failure opens it for twice as long.
 */
export class Breaker {
  #failures = 0
  #pauseMs = SHORTEST_MS
  /** When the next probe may go out; undefined: closed. */
  #openUntilMs: number | undefined
  #isProbing = false
  #cause: unknown
  readonly #outages: ServersWatch | undefined
  readonly #node: string

  /**
   * @param outages gets what becomes of the requests
   * @param node the name of the server, if its client has several
   */
  constructor(outages?: ServersWatch, node = '') {
    this.#outages = outages
    this.#node = node
  }

  /** Why the last of the requests failed, since the last success. */
  get cause(): unknown {
    return this.#cause
  }

  get isOpen(): boolean {
    return this.#openUntilMs !== undefined
  }

  /** Whether a request may go out now. If the breaker is open, it is the probe. */
  admits(nowMs: number): boolean {
    if (this.#openUntilMs === undefined) return true
    if (this.#isProbing || nowMs < this.#openUntilMs) return false
    this.#isProbing = true
    return true
  }

  /** A request that was sent has a reply. */
  succeed(): void {
    this.#failures = 0
    this.#cause = undefined
    this.#pauseMs = SHORTEST_MS
    this.#openUntilMs = undefined
    this.#isProbing = false
    this.#outages?.answered(this.#node)
  }

  /** No request follows. */
  close(): void {
    this.#outages?.forget(this.#node)
  }

  /**
   * A request failed, or has no reply in time.
   * @param isProbe whether it was sent while the breaker was open
   * @param cause why it failed
   * @returns whether the breaker opens by it, or stays open for longer
   */
  fail(nowMs: number, isProbe: boolean, cause: unknown): boolean {
    this.#cause = cause
    this.#failures++
    this.#outages?.failed(this.#node, cause)
    if (this.isOpen ? !isProbe : this.#failures < MOST_FAILURES) return false
    this.#isProbing = false
    this.#openUntilMs = nowMs + (this.#pauseMs / 2) * (1 + Math.random())
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_MS)
    return true
  }
}
