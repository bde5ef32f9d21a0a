// run: typescript, also-full
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { size } from '../size.js'

interface Model {
  explore(scenario: object, mistake?: string): { states: number; ends: number; wrong?: string }
  scenarios: Record<string, object>
  mistakes: Record<string, string>
}
const { explore, scenarios, mistakes }: Model = await import(
  new URL('../../../test/model/ring-transport.mjs', import.meta.url).href
)

/** Scenarios with tens of thousands of states, which take seconds each. */
const SLOW = [
  'three turns',
  'a death in a turn of parts',
  'a turn in parts',
  'two deaths',
  'cancelled start, and a death',
]

for (const [name, scenario] of Object.entries(scenarios)) {
  if (size === 'quick' && SLOW.includes(name)) continue
  test(`every interleaving of a client and its servers holds: ${name}`, () => {
    const { wrong, ends } = explore(scenario)
    assert.is(wrong, undefined)
    assert.ok(ends > 0)
  })
}

for (const [mistake, name] of Object.entries(mistakes)) {
  test(`the model finds the mistake: ${mistake}`, () => {
    assert.type(explore(scenarios[name]!, mistake).wrong, 'string')
  })
}

test.run()
