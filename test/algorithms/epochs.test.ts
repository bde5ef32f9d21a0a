// Counts of epochs are upper bounds, also while the slots that ways share become more.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Epochs } from '#millrace/algorithms/epochs.js'
import { shapeFor } from '#millrace/memory/layout.js'
import { random } from './random.js'

const shape = shapeFor(60_000, 60, 200)
const baseOf = (way: number) => shape.waysAt + way * shape.wayWords
/** `MAX_NEW_EPOCHS` of `epochs.ts`. */
const MOST = 64

test('no way with more new epochs than a decision may miss is within its epochs, whenever slots are divided', () => {
  const next = random(1)
  const below = (n: number) => Math.floor(n * next())
  const epochs = new Epochs(shape)
  const counts = new Array<number>(shape.ways).fill(0)
  const eras = [{ begun: epochs.begun, counts: [...counts] }]
  epochs.onEra = () => eras.push({ begun: epochs.begun, counts: [...counts] })
  for (let i = 0; i < 60_000; i++) {
    // A few ways get most epochs.
    const way = below(2) === 0 ? 37 * below(8) : below(shape.ways)
    counts[way]!++
    epochs.count(baseOf(way))
  }
  assert.ok(eras.length > 100, `${eras.length} eras`)
  for (const { begun, counts: then } of eras) {
    for (let way = 0; way < shape.ways; way++) {
      if (counts[way]! - then[way]! > MOST) assert.not(epochs.isWithinEpochs(begun, way), `way ${way}`)
    }
  }
})

test('in the first eras, few new epochs are as good as none', () => {
  const epochs = new Epochs(shape)
  const { begun } = epochs
  for (let way = 0; way < 3_000; way++) epochs.count(baseOf(way % shape.ways))
  for (let way = 0; way < shape.ways; way++) assert.ok(epochs.isWithinEpochs(begun, way))
})

test.run()
