// Loaded before all else into every thread (`node --import`): there it holds a pool's thread where its
// program asks for it. The program shares this memory with its threads under the name HELD_UP.
import { getEnvironmentData, isMainThread } from 'node:worker_threads'
import { AWAKE, ENDED, kindOf, RingMemory, STATE } from '#millrace/engines/ring-transport.js'
import { ACCEPTED, COMPLETED } from '#millrace/memory/request-ring.js'

export const HELD_UP = 'held up'

/** Indexes: how many answerers have begun, and have ended. */
export const STARTS = 0
export const ENDS = 1
/**
 * Where the next thread is held: between ACCEPTED and COMPLETED of a request, after it has said that its
 * answerer ended, as it starts.
 */
export const MIDWAY = 2
export const AT_END = 3
export const AT_START = 4
export const WORDS = 5

/**
 * What stands there: nothing; the program asks for it; a thread is held. A thread that is let go goes on, or
 * exits.
 */
export const FREE = 0
export const HOLD = 1
export const HELD = 2
export const EXIT = 3

const memory = getEnvironmentData(HELD_UP)
if (!isMainThread && memory instanceof SharedArrayBuffer) obey(new Int32Array(memory))

function obey(orders: Int32Array): void {
  const { load, store, compareExchange, add, wait } = Atomics
  const ringWords = new RingMemory().words.length
  let ring: Int32Array | undefined

  const passBy = (place: number): void => {
    if (compareExchange(orders, place, HOLD, HELD) === HOLD) wait(orders, place, HELD)
    if (compareExchange(orders, place, EXIT, FREE) === EXIT) process.exit()
  }
  const passMidway = (): void => {
    if (ring !== undefined && ring[ACCEPTED] !== ring[COMPLETED]) passBy(MIDWAY)
  }
  const isState = (words: unknown, index: number): words is Int32Array =>
    index === STATE && words instanceof Int32Array && words.length === ringWords

  passBy(AT_START)
  Object.assign(Atomics, {
    load(words: Int32Array, index: number) {
      passMidway()
      return load(words, index)
    },
    compareExchange(words: Int32Array, index: number, expected: number, value: number) {
      passMidway()
      const found = compareExchange(words, index, expected, value)
      if (found === expected && isState(words, index) && kindOf(value) === AWAKE) {
        ring = words
        add(orders, STARTS, 1)
      }
      return found
    },
    store(words: Int32Array, index: number, value: number) {
      passMidway()
      const stored = store(words, index, value)
      if (isState(words, index) && kindOf(value) === ENDED) {
        add(orders, ENDS, 1)
        passBy(AT_END)
      }
      return stored
    },
  })
}
