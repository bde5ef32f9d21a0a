// run: full
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  LINE_WORDS,
  pingPong,
  privateWords,
  storeRequests,
  WORDS,
} from '../../bench/transport/cache-lines.js'

const SERVER = new URL('../../bench/transport/cache-line-server.js', import.meta.url)

async function withServer(stride: number, act: (words: Int32Array) => void): Promise<void> {
  const words = new Int32Array(new SharedArrayBuffer(4 * WORDS))
  const worker = new Worker(SERVER, { workerData: { words, count: 4_800, stride } })
  await once(worker, 'message')
  act(words)
  assert.equal([words[0], words[16]], [4_800, 4_800])
  assert.equal(await once(worker, 'exit'), [0])
}

test('pingPong and reply take turns, and count every round trip', () =>
  withServer(0, (words) => {
    pingPong(words, 1, 1_600)
    assert.equal([words[0], words[16]], [1_600, 1_600])
    pingPong(words, 1_601, 3_200)
  }))

for (const stride of [LINE_WORDS, LINE_WORDS / 4]) {
  test(`requests ${stride} words apart arrive as they were stored, also after the ring wraps`, () =>
    withServer(stride, (words) => {
      storeRequests(words, privateWords(), 0, 1_600, stride)
      assert.equal([words[0], words[16]], [1_600, 1_600])
      storeRequests(words, privateWords(), 1_600, 3_200, stride)
    }))
}

test.run()
