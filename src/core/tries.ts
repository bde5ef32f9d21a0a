import { MillraceError } from './errors.js'

/**
 * How often a loop on shared memory tries again before it gives up. Each such loop ends once no other thread changes
 * its words between two of its steps. So among threads that all count honestly, it tries again only because another
 * one has made progress meanwhile, or has vetoed its insertion. Against 15 threads that do nothing else, a try is lost
 * with a chance of at most 15/16, and 10,000 in a row with a chance below 10^-280. The most that any loop needed was
 * 33, in 2 million calls by 16 threads on one key and on two full sets (AMD EPYC Zen 4, two processors, Node 20.20,
 * 2026-11-27, `test/engines/contention.test.ts`). Where it is reached, words contradict each other, and no thread
 * will ever change them. A call then gives up within a tenth of a second.
 */
export const MOST_TRIES = 10_000

/** Ends each round of a loop on shared memory. @throws MillraceError `ERR_MILLRACE_DAMAGED` after `MOST_TRIES` */
export function again(tries: number): number {
  if (tries >= MOST_TRIES) throw damagedError()
  return tries + 1
}

export function damagedError(): MillraceError {
  const expected = `words that agree with each other; after ${MOST_TRIES} tries they still do not`
  return new MillraceError('ERR_MILLRACE_DAMAGED', 'memory', 'damaged memory', expected)
}
