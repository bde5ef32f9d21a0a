// run: also-full
// `readInOrder` and the plain reads of a decision rely on this: no compiler moves a read across an atomic
// operation. This is a short run of `npm run dev -- litmus` with a fixed number of rounds, so that a busy machine
// does not lengthen it.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { SHAPES } from '../arm64/shapes.js'
import { watch } from '../arm64/watch.js'
import { sized } from '../size.js'
import { type Handshake, readTwice } from './read-twice.js'

/** 1,024 rounds each: the compiler optimizes both sides after a few thousand. */
const CLEARINGS = sized({ quick: 6, full: 16 })

const WARM_UP = 100_000
const ROUNDS = 200

for (const [i, { name, allowed }] of SHAPES.entries()) {
  if (allowed) continue
  test(`the forbidden reordering is not observed: ${name}`, async () => {
    const { reordered } = await watch(i, { clearings: CLEARINGS })
    assert.is(reordered, 0)
  })
}

test('optimized code reads a word again after an atomic operation', async () => {
  const words = new Int32Array(new SharedArrayBuffer(4 * 3))
  const { FLAG } = readTwice
  for (let i = 0; i < WARM_UP; i++) {
    words[FLAG] = 1
    readTwice.of(words)
  }
  words.fill(0)
  const worker = new Worker(new URL('./read-twice.js', import.meta.url), {
    workerData: { words, rounds: ROUNDS } satisfies Handshake,
  })
  const ended = once(worker, 'exit')
  for (let round = 1; round <= ROUNDS; round++) {
    const { before, after } = readTwice.of(words)
    assert.equal([before, after], [round - 1, round])
  }
  await ended
})

test.run()
