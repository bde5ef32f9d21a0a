import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { FiguresDemand } from '#millrace/core/figures-demand.js'

test('a read figure lets eight more decisions compute theirs, by TypeScript or by the addon', () => {
  const demand = new FiguresDemand()
  const word = new Int32Array(1)
  demand.countIn(word, 0)
  assert.equal([demand.left, word[0]], [0, 0])
  demand.renew()
  assert.equal([demand.left, word[0]], [8, 8])
  demand.left--
  demand.renew()
  assert.equal([demand.left, word[0]], [15, 16])
})

test('after the last read figure, 64 decisions do at most, however many were read', () => {
  const demand = new FiguresDemand()
  const word = new Int32Array(1)
  demand.countIn(word, 0)
  for (let i = 0; i < 1_000; i++) demand.renew()
  assert.equal([demand.left, word[0]], [64, 64])
})

test('another word goes on with the number of the one before', () => {
  const demand = new FiguresDemand()
  const words = new Int32Array(3)
  demand.countIn(words, 0)
  demand.renew()
  demand.countIn(words, 2)
  demand.renew()
  assert.equal([...words], [8, 0, 16])
})

test.run()
