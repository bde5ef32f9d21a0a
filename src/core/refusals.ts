import { createRequire } from 'node:module'
import { countsRefusedKeys } from './channels.js'
import { invalid } from './errors.js'
import { lazily } from './lazily.js'
import { refuseUnknown } from './option-names.js'
import type { TopKey, TopKeys } from './top-keys.js'

const require = createRequire(import.meta.url)
const topKeys = lazily(() => require('./top-keys.js') as typeof import('./top-keys.js'))

/** The options of `top`. */
export interface TopOptions {
  /** What is counted: `'refused'`, the refusals that are events of `millrace:limited` and `millrace:blocked`. */
  by: 'refused'
  /**
   * How many keys to return, at most: 1 to 1,024.
   * @default 10
   */
  n?: number
}

const MOST_ROWS = 1_024

/** Counts the refused keys of one limiter, once `top` has been called. */
export class Refusals {
  #top: TopKeys | undefined
  #isOpen = true

  /**
   * The keys that were refused most since the first call.
   * @throws MillraceError `ERR_MILLRACE_INVALID_OPTION`
   */
  top(options: TopOptions): TopKey[] {
    if (typeof options !== 'object' || options === null)
      throw invalid('options', options, "an object such as { by: 'refused', n: 10 }")
    refuseUnknown(options, ['by', 'n'], (name, expected) => invalid('options', name, expected))
    const { by, n = 10 } = options
    if (by !== 'refused') throw invalid('by', by, "'refused'")
    if (!(Number.isInteger(n) && n >= 1 && n <= MOST_ROWS))
      throw invalid('n', n, `an integer from 1 to ${MOST_ROWS}`)
    if (this.#top === undefined && this.#isOpen) {
      this.#top = new (topKeys().TopKeys)()
      countsRefusedKeys(1)
    }
    return this.#top?.most(n) ?? []
  }

  /** Counts a refusal. Only the text of a key is counted, and not a handle. */
  note(key: unknown): void {
    if (typeof key === 'string') this.#top?.add(key)
  }

  close(): void {
    if (this.#top !== undefined) countsRefusedKeys(-1)
    this.#top = undefined
    this.#isOpen = false
  }
}
