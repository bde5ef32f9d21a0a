import { type Clock, SharedManualClock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import type { MillraceError } from '../core/errors.js'
import { offAbort, onAbort } from '../core/on-abort.js'

const LONGEST_TIMER_MS = 2 ** 31 - 1 // a longer one fires at once

/** Who waits, for what. */
export interface Want {
  /** Who waits for the same key stands in one line. */
  line: string
  decide(): Decision | Promise<Decision>
  /** Takes back an admission that came when its caller had gone. */
  giveBack?(decision: Decision): void
  /** The error for a refusal that no waiting ends. */
  never(): MillraceError
}

interface Waiting extends Want {
  resolve(decision: Decision): void
  reject(reason: unknown): void
}

/** Those who wait for one key, first come first served; one timer for all of them. */
interface Line {
  waiting: Waiting[]
  wake: () => void
  /** How often it was woken. */
  wakes: number
}

/** Everybody in this thread who waits until a limiter admits them. */
export class Waiters {
  readonly #clock: Clock
  readonly #lines = new Map<string, Line>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Resolves with the first decision that admits. Who waits for the same key is served in order, so a large cost is not
   * passed for ever by small ones. Rejects with the signal's reason, with `never()`, and with what `decide` throws.
   */
  wait(want: Want, signal?: AbortSignal): Promise<Decision> {
    const { line } = want
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      const waiting: Waiting = {
        ...want,
        resolve: (decision) => {
          if (signal) offAbort(signal, abort)
          resolve(decision)
        },
        reject: (reason) => {
          if (signal) offAbort(signal, abort)
          reject(reason)
        },
      }
      const abort = () => {
        this.#leave(line, waiting)
        waiting.reject(signal?.reason)
      }
      if (signal) onAbort(signal, abort)
      const standing = this.#lines.get(line)
      if (standing) {
        standing.waiting.push(waiting)
        return
      }
      const made: Line = { waiting: [waiting], wake: () => {}, wakes: 0 }
      this.#lines.set(line, made)
      void this.#serve(line, made)
    })
  }

  /** Room may have come earlier than foreseen: everybody tries again. */
  wakeAll(): void {
    for (const line of this.#lines.values()) wake(line)
  }

  /** Turns everybody away. */
  rejectAll(reason: MillraceError): void {
    for (const line of this.#lines.values()) {
      for (const waiting of line.waiting.splice(0)) waiting.reject(reason)
      wake(line)
    }
  }

  #leave(key: string, waiting: Waiting): void {
    const line = this.#lines.get(key)
    const place = line?.waiting.indexOf(waiting) ?? -1
    if (line === undefined || place < 0) return
    line.waiting.splice(place, 1)
    if (place === 0) wake(line)
  }

  async #serve(key: string, line: Line): Promise<void> {
    for (let first = line.waiting[0]; first !== undefined; first = line.waiting[0]) {
      const turns = this.#clock instanceof SharedManualClock ? this.#clock.turns : 0
      const { wakes } = line
      try {
        const decided = first.decide()
        const decision = decided instanceof Promise ? await decided : decided
        if (line.waiting[0] !== first) {
          if (decision.allowed) first.giveBack?.(decision)
          continue
        }
        if (decision.allowed) {
          line.waiting.shift()
          first.resolve(decision)
          continue
        }
        const { retryAfterMs } = decision
        if (retryAfterMs !== Number.POSITIVE_INFINITY) {
          if (line.wakes === wakes) await this.#sleep(line, retryAfterMs, turns)
          continue
        }
      } catch (error) {
        if (line.waiting[0] !== first) continue
        line.waiting.shift()
        first.reject(error)
        continue
      }
      line.waiting.shift()
      first.reject(first.never())
    }
    this.#lines.delete(key)
  }

  /** Until then by the clock, or until somebody wakes the line. A manual clock says itself when it is turned. */
  #sleep(line: Line, ms: number, turns: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#clock instanceof SharedManualClock) {
        line.wake = resolve
        void this.#clock.turned(turns).then(resolve)
        return
      }
      const timer = setTimeout(resolve, Math.min(ms, LONGEST_TIMER_MS))
      line.wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

function wake(line: Line): void {
  line.wakes++
  line.wake()
}
