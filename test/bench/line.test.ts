// run: full
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { LINE_WORDS, ownWords, request, thereAndBack, WORDS } from '../../bench/transport/line.js'

const ANSWERER = new URL('../../bench/transport/line-answerer.js', import.meta.url)

async function answered(apart: number, ask: (words: Int32Array) => void): Promise<void> {
  const words = new Int32Array(new SharedArrayBuffer(4 * WORDS))
  const worker = new Worker(ANSWERER, { workerData: { words, count: 4_800, apart } })
  await once(worker, 'message')
  ask(words)
  assert.equal([words[0], words[16]], [4_800, 4_800])
  assert.equal(await once(worker, 'exit'), [0])
}

test('each of two threads stores into its line when the other has stored into its own', () =>
  answered(0, (words) => {
    thereAndBack(words, 1, 1_600)
    assert.equal([words[0], words[16]], [1_600, 1_600])
    thereAndBack(words, 1_601, 3_200)
  }))

for (const apart of [LINE_WORDS, LINE_WORDS / 4]) {
  test(`requests ${apart} words apart come as they were stored, more than go around`, () =>
    answered(apart, (words) => {
      request(words, ownWords(), 0, 1_600, apart)
      assert.equal([words[0], words[16]], [1_600, 1_600])
      request(words, ownWords(), 1_600, 3_200, apart)
    }))
}

test.run()
