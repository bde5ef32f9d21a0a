/** Lines of memory that go from one thread to another, and nothing that takes time beside that. */

/** Words, each on a line of its own: how much was asked, and how much answered. */
const ASKED = 0
const ANSWERED = 16
const FAILED = -1
const REQUESTS_AT = 32
const REQUESTS = 1024
const REQUEST_WORDS = 4
/** As `engines/pool.ts` shows its requests, and about as many as its callers make in a turn. */
const SHOWN_TOGETHER = 16
const UNDER_WAY = 256
/** What a pooled decision's objects take, about. */
const OWN_STORES = 72
const OWN_WORDS = 1 << 20

export const LINE_WORDS = 16
export const WORDS = REQUESTS_AT + REQUESTS * LINE_WORDS

/** Asks so many times, and waits for each answer. What is asked are numbers that follow each other. */
export function thereAndBack(words: Int32Array, first: number, turns: number): void {
  for (let turn = first; turn < first + turns; turn++) {
    Atomics.store(words, ASKED, turn)
    while (Atomics.load(words, ANSWERED) !== turn);
  }
}

/** Answers so many times, from 1. */
export function answer(words: Int32Array, turns: number): void {
  for (let turn = 1; turn <= turns; turn++) {
    while (Atomics.load(words, ASKED) !== turn);
    Atomics.store(words, ANSWERED, turn)
  }
}

/**
 * Stores so many requests, each `apart` words from the one before, and much else that nobody reads.
 * @throws RangeError for numbers that are no multiples of what is shown together, Error where the other thread has failed
 */
export function request(
  words: Int32Array,
  own: Float64Array,
  first: number,
  count: number,
  apart: number,
): void {
  if (first % SHOWN_TOGETHER !== 0 || count % SHOWN_TOGETHER !== 0) {
    throw new RangeError(`${first}, ${count}: expected multiples of ${SHOWN_TOGETHER}`)
  }
  let at = 0
  for (let next = first; next < first + count; next++) {
    const request = REQUESTS_AT + (next & (REQUESTS - 1)) * apart
    for (let i = 0; i < REQUEST_WORDS; i++) words[request + i] = next
    for (let i = 0; i < OWN_STORES; i++) own[at + i] = next
    at = (at + OWN_STORES) % (OWN_WORDS - OWN_STORES)
    if ((next + 1) % SHOWN_TOGETHER !== 0) continue
    Atomics.store(words, ASKED, next + 1)
    while (next - answeredOf(words) > UNDER_WAY);
  }
  while (answeredOf(words) !== first + count);
}

function answeredOf(words: Int32Array): number {
  const answered = Atomics.load(words, ANSWERED)
  if (answered === FAILED) throw new Error('a request was read wrongly')
  return answered
}

/** Reads them. @throws Error where one says another's number */
export function readRequests(words: Int32Array, count: number, apart: number): void {
  for (let next = 0; next < count; ) {
    const asked = Atomics.load(words, ASKED)
    for (; next < asked; next++) {
      const request = REQUESTS_AT + (next & (REQUESTS - 1)) * apart
      for (let i = 0; i < REQUEST_WORDS; i++) {
        if (words[request + i] === next) continue
        Atomics.store(words, ANSWERED, FAILED)
        throw new Error(`request ${next} says ${words[request + i]}`)
      }
    }
    Atomics.store(words, ANSWERED, next)
  }
}

export const ownWords = (): Float64Array => new Float64Array(OWN_WORDS)
