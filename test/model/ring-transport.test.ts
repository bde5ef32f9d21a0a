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

/** These have more than a hundred thousand states each. */
const SECONDS = ['a turn in parts', 'two deaths', 'given up, and a death']

for (const [name, scenario] of Object.entries(scenarios)) {
  if (size === 'quick' && SECONDS.includes(name)) continue
  test(`the ring between two threads holds at every interleaving: ${name}`, () => {
    const { wrong, ends } = explore(scenario)
    assert.is(wrong, undefined)
    assert.ok(ends > 0)
  })
}

for (const [mistake, name] of Object.entries(mistakes)) {
  test(`with one rule left out it fails: ${mistake}`, () => {
    assert.type(explore(scenarios[name]!, mistake).wrong, 'string')
  })
}

test.run()
