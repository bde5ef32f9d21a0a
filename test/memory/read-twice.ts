// One thread reads a word, takes a flag by compare-exchange, then reads the word again. The other thread,
// which runs this file, changes the word and then sets the flag. So the second read must return the change in
// every interleaving.
import { isMainThread, workerData } from 'node:worker_threads'

export interface Handshake {
  readonly words: Int32Array
  readonly rounds: number
}

const X = 0
const FLAG = 1
const BEGUN = 2

function of(words: Int32Array): { before: number; after: number } {
  const before = words[X]!
  Atomics.add(words, BEGUN, 1)
  while (Atomics.compareExchange(words, FLAG, 1, 0) !== 1);
  const after = words[X]!
  return { before, after }
}

export const readTwice = { of, FLAG }

function change({ words, rounds }: Handshake): void {
  for (let round = 1; round <= rounds; round++) {
    while (Atomics.load(words, BEGUN) < round);
    words[X] = round
    Atomics.store(words, FLAG, 1)
  }
}

if (!isMainThread) change(workerData as Handshake)
