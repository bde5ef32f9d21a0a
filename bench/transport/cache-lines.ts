/** Moves cache lines from one thread to another and does nothing else that takes time. */

/**
 * Indices of words, each on its own cache line: the number of requests published, and the number answered.
 */
const REQUESTED = 0
const ANSWERED = 16
const FAILED = -1
const REQUESTS_AT = 32
const REQUESTS = 1024
const REQUEST_WORDS = 4
/**
 * Requests published with one store: the number of `engines/pool/pool.ts`, about what its callers make per loop
 * turn.
 */
const PUBLISHED_TOGETHER = 16
const MAX_IN_FLIGHT = 256
/** Stores to private memory per request: about as many as the objects of a pooled decision take. */
const PRIVATE_STORES = 72
const PRIVATE_WORDS = 1 << 20

export const LINE_WORDS = 16
export const WORDS = REQUESTS_AT + REQUESTS * LINE_WORDS

/** Sends consecutive numbers, one per turn, and waits for the other thread to return each. */
export function pingPong(words: Int32Array, first: number, turns: number): void {
  for (let turn = first; turn < first + turns; turn++) {
    Atomics.store(words, REQUESTED, turn)
    while (Atomics.load(words, ANSWERED) !== turn);
  }
}

/** Returns the numbers from 1 to `turns`, each as soon as it arrives. */
export function reply(words: Int32Array, turns: number): void {
  for (let turn = 1; turn <= turns; turn++) {
    while (Atomics.load(words, REQUESTED) !== turn);
    Atomics.store(words, ANSWERED, turn)
  }
}

/**
 * Stores `count` requests, `stride` words apart, and writes private memory after each.
 * @throws RangeError if `first` or `count` is not a multiple of 16, the requests published together
 * @throws Error if the other thread has read a wrong number
 */
export function storeRequests(
  words: Int32Array,
  privateMemory: Float64Array,
  first: number,
  count: number,
  stride: number,
): void {
  if (first % PUBLISHED_TOGETHER !== 0 || count % PUBLISHED_TOGETHER !== 0) {
    throw new RangeError(`${first}, ${count}: expected multiples of ${PUBLISHED_TOGETHER}`)
  }
  let at = 0
  for (let next = first; next < first + count; next++) {
    const request = REQUESTS_AT + (next & (REQUESTS - 1)) * stride
    for (let i = 0; i < REQUEST_WORDS; i++) words[request + i] = next
    for (let i = 0; i < PRIVATE_STORES; i++) privateMemory[at + i] = next
    at = (at + PRIVATE_STORES) % (PRIVATE_WORDS - PRIVATE_STORES)
    if ((next + 1) % PUBLISHED_TOGETHER !== 0) continue
    Atomics.store(words, REQUESTED, next + 1)
    while (next - answeredOf(words) > MAX_IN_FLIGHT);
  }
  while (answeredOf(words) !== first + count);
}

function answeredOf(words: Int32Array): number {
  const answered = Atomics.load(words, ANSWERED)
  if (answered === FAILED) throw new Error('the other thread read a wrong request')
  return answered
}

/**
 * Reads the requests that {@link storeRequests} stores.
 * @throws Error if a request has another request's number
 */
export function readRequests(words: Int32Array, count: number, stride: number): void {
  for (let next = 0; next < count; ) {
    const requested = Atomics.load(words, REQUESTED)
    for (; next < requested; next++) {
      const request = REQUESTS_AT + (next & (REQUESTS - 1)) * stride
      for (let i = 0; i < REQUEST_WORDS; i++) {
        if (words[request + i] === next) continue
        Atomics.store(words, ANSWERED, FAILED)
        throw new Error(`request ${next} has the number ${words[request + i]}`)
      }
    }
    Atomics.store(words, ANSWERED, next)
  }
}

export const privateWords = (): Float64Array => new Float64Array(PRIVATE_WORDS)
