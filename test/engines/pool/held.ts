// Loaded into every thread before anything else (`node --import`). It holds a pool's thread at a step chosen
// by the program, which shares memory with its threads under the name HELD_UP.
import { getEnvironmentData, isMainThread } from 'node:worker_threads'
import { AWAKE, ENDED, kindOf, RingMemory, STATE } from '#millrace/engines/pool/ring-transport.js'
import { ACCEPTED, COMPLETED } from '#millrace/memory/request-ring.js'

export const HELD_UP = 'held up'

/** Indexes: the number of servers that have begun, and of those that have ended. */
export const STARTS = 0
export const ENDS = 1
/**
 * Steps at which the next thread is held: between ACCEPTED and COMPLETED, after it stored ENDED, or as it
 * starts.
 */
export const MIDWAY = 2
export const AT_END = 3
export const AT_START = 4
/**
 * Index: after how many steps (calls of `Atomics`) between ACCEPTED and COMPLETED the thread exits, counted
 * down; 0: it goes on.
 */
export const STEPS_LEFT = 5
export const WORDS = 6

/** The state of a step: nothing; hold the next thread; a thread is held; the thread must exit. */
export const FREE = 0
export const HOLD = 1
export const HELD = 2
export const EXIT = 3

const memory = getEnvironmentData(HELD_UP)
if (!isMainThread && memory instanceof SharedArrayBuffer) obey(new Int32Array(memory))

function obey(orders: Int32Array): void {
  const { load, store, compareExchange, add, wait } = Atomics
  /** The lengths of a ring of one rule, and of two. */
  const ringWords = [1, 2].map((rules) => new RingMemory(rules).words.length)
  let ring: Int32Array | undefined

  const holdAt = (place: number): void => {
    if (compareExchange(orders, place, HOLD, HELD) === HOLD) wait(orders, place, HELD)
    if (compareExchange(orders, place, EXIT, FREE) === EXIT) process.exit()
  }
  const holdMidway = (): void => {
    if (ring === undefined || ring[ACCEPTED] === ring[COMPLETED]) return
    holdAt(MIDWAY)
    if (load(orders, STEPS_LEFT) > 0 && add(orders, STEPS_LEFT, -1) === 1) process.exit()
  }
  const isState = (words: unknown, index: number): words is Int32Array =>
    index === STATE && words instanceof Int32Array && ringWords.includes(words.length)

  holdAt(AT_START)
  Object.assign(Atomics, {
    load(words: Int32Array, index: number) {
      holdMidway()
      return load(words, index)
    },
    compareExchange(words: Int32Array, index: number, expected: number, value: number) {
      holdMidway()
      const found = compareExchange(words, index, expected, value)
      if (found === expected && isState(words, index) && kindOf(value) === AWAKE) {
        ring = words
        add(orders, STARTS, 1)
      }
      return found
    },
    store(words: Int32Array, index: number, value: number) {
      holdMidway()
      const stored = store(words, index, value)
      if (isState(words, index) && kindOf(value) === ENDED) {
        add(orders, ENDS, 1)
        holdAt(AT_END)
      }
      return stored
    },
  })
}
