// run: typescript, modules
// What ends an outage of several servers when one of them is asked no more.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { OutageWatch } from '#millrace/remote/outage-watch.js'

const LONG_MS = 5_000

function outageOfTwo() {
  const clock = { nowMs: 0 }
  const watch = new OutageWatch('closed', 'own', 'test', undefined, () => clock.nowMs)
  const [first, second] = [watch.of({}), watch.of({})]
  first.failed('', new Error('down'))
  second.failed('', new Error('down'))
  first.answered('')
  return { clock, watch, first, second }
}

test('a server that is asked no more keeps no outage going that the others have left', () => {
  const { clock, watch, second } = outageOfTwo()
  clock.nowMs = LONG_MS
  assert.is(watch.isOn, true, 'the second one fails')
  second.forget('')
  assert.is(watch.isOn, false)
})

test('that none is asked any more is no recovery', () => {
  for (const inTurn of [true, false]) {
    const { clock, watch, first, second } = outageOfTwo()
    const servers = inTurn ? [first, second] : [second, first]
    for (const server of servers) server.forget('')
    clock.nowMs = LONG_MS
    assert.is(watch.isOn, true)
  }
})

test('a server that fails again after its answer ends nothing', () => {
  const { clock, watch, first, second } = outageOfTwo()
  first.failed('', new Error('down'))
  clock.nowMs = LONG_MS
  second.forget('')
  assert.is(watch.isOn, true)
})

test.run()
