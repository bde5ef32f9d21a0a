import { createHash } from 'node:crypto'
import { shownKey } from './events.js'

/** A key that was refused often. */
export interface TopKey {
  /** The key as events show it: its text on one line, or its hash (`setEventOptions`). */
  readonly key: string
  /** How often it was refused, at most. */
  readonly count: number
  /** By how much `count` may be too high: it was refused at least `count - error` times. */
  readonly error: number
}

/** The keys that are counted at the same time. */
const COUNTED_KEYS = 1_024
/** A longer key is known by its hash, so that memory is bounded. That has 129 characters: no key is like it. */
const LONGEST_ID = 128

interface Entry {
  readonly id: string
  readonly key: string
  count: number
  readonly error: number
  /** Its place in the heap. */
  at: number
}

/**
 * Finds the keys that come most often in a stream, with bounded memory: "space-saving" (Metwally, Agrawal, El Abbadi:
 * "Efficient Computation of Frequent and Top-k Elements in Data Streams", 2005).
 *
 * A key without a counter takes that of the key with the least count, and its count, as the error: it may have come as
 * often before. So no key that came more often than the least count is missing, and that is at most the length of the
 * stream divided by the counters. The entries are a heap with the least count first.
 */
export class TopKeys {
  readonly #entries = new Map<string, Entry>()
  readonly #heap: Entry[] = []

  add(key: string): void {
    const id = key.length > LONGEST_ID ? `#${createHash('sha512').update(key, 'utf16le').digest('hex')}` : key
    const known = this.#entries.get(id)
    if (known !== undefined) {
      known.count++
      this.#sink(known)
      return
    }
    const isFull = this.#heap.length === COUNTED_KEYS
    const error = isFull ? this.#heap[0]!.count : 0
    const entry: Entry = { id, key: shownKey(key)!, count: error + 1, error, at: 0 }
    this.#entries.set(id, entry)
    if (isFull) {
      this.#entries.delete(this.#heap[0]!.id)
      this.#heap[0] = entry
      this.#sink(entry)
    } else this.#push(entry)
  }

  /** The keys with the highest counts, the highest first. */
  most(n: number): TopKey[] {
    const sorted = this.#heap.toSorted((one, other) => other.count - one.count)
    return sorted.slice(0, n).map(({ key, count, error }) => ({ key, count, error }))
  }

  /** Adds an entry, with a count of 1: no entry has less. */
  #push(entry: Entry): void {
    const heap = this.#heap
    entry.at = heap.length
    heap.push(entry)
    while (entry.at > 0) {
      const parent = heap[(entry.at - 1) >> 1]!
      if (parent.count <= entry.count) return
      this.#swap(parent, entry)
    }
  }

  /** Moves an entry down whose count has grown. */
  #sink(entry: Entry): void {
    const heap = this.#heap
    for (;;) {
      const [left, right] = [heap[2 * entry.at + 1], heap[2 * entry.at + 2]]
      const least = right !== undefined && right.count < left!.count ? right : left
      if (least === undefined || least.count >= entry.count) return
      this.#swap(entry, least)
    }
  }

  #swap(upper: Entry, lower: Entry): void {
    const heap = this.#heap
    const { at } = upper
    upper.at = lower.at
    lower.at = at
    heap[upper.at] = upper
    heap[lower.at] = lower
  }
}
