// run: typescript
// Interrupts a thread at each of its operations on shared memory in turn. There another thread changes the
// window, converts the cell, and may die. `test/explore` judges decisions. These tests judge what other calls
// return.
import { attachLimiter, type Limiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { limiterWith } from '../limiter/support.js'
import { diesAt, interrupted } from './interrupted.js'

/**
 * Uses a key's whole limit of 5. Then calls `act`. At each of its points in turn another thread changes the
 * window, decides on the key, and dies at each of its own points in turn.
 */
function besideAConversion<T>(act: (limiter: Limiter) => T, judge: (result: T, at: string) => void): void {
  let deaths = 0
  let last = 0
  for (let reached = true; reached; last++) {
    for (let death = 0, dies = true; reached && dies; death++) {
      const { limiter } = limiterWith({ maxKeys: 1 })
      const other = attachLimiter(limiter.share())
      limiter.check('key', 5)
      const between = () => {
        other.update('default', { window: '1h' })
        dies = diesAt(death, () => other.check('key'))
        if (dies) deaths++
      }
      const { result, wasInterrupted } = interrupted([last], () => act(limiter), between)
      reached = wasInterrupted
      judge(result, `interrupted at ${last} by a thread that died at ${death}`)
    }
  }
  assert.ok(last > 4 && deaths > 100, `${last} points, ${deaths} deaths`)
}

test('a look at a full key refuses, however far another thread has converted its cell', () => {
  besideAConversion(
    (limiter) => limiter.peek('key'),
    ({ allowed, remaining }, at) => assert.equal([allowed, remaining], [false, 0], at),
  )
})

test('the usage of a key contains its units, however far another thread has converted its cell', () => {
  besideAConversion(
    (limiter) => limiter.usage('key'),
    (used, at) => assert.ok(used >= 5, `${used} ${at}`),
  )
})

test.run()
