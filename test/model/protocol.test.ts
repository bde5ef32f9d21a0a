// The protocol's model, on the scenarios that take seconds; `npm run model` runs all of them (half an hour).
import { test } from 'uvu'
import * as assert from 'uvu/assert'

interface Found {
  states: number
  ends?: number
  wrong?: string
  stopped?: boolean
}
interface Model {
  explore(scenario: object, mistake?: string, most?: number): Found
  scenarios: Record<string, object>
  mistakes: Record<string, string>
}
const model: Model = await import(new URL('../../../test/model/way-protocol.mjs', import.meta.url).href)

const QUICK = [
  'idle for exactly all laps',
  'a refund among decisions',
  'a sum among charges',
  'given back after all laps',
  'refunds before and after',
  'a refund while its way is reused',
  'a block among decisions',
  'two keys swap ways',
  'live eviction',
  'a death while deciding',
]

for (const name of QUICK) {
  test(`holds at every interleaving: ${name}`, () => {
    const found = model.explore(model.scenarios[name]!)
    assert.is(found.wrong, undefined)
    assert.is(found.stopped, undefined)
    assert.ok(found.ends! > 0)
  })
}

for (const [mistake, scenario] of Object.entries(model.mistakes)) {
  test(`with one rule left out it fails: ${mistake}`, () => {
    assert.type(model.explore(model.scenarios[scenario]!, mistake).wrong, 'string')
  })
}

test.run()
