// run: typescript, first, full, also-long
// Scenarios of the model of the sliding log, a tenth of them; `npm run test:long` runs all of them.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { shareOf } from '../size.js'

interface Found {
  states: number
  ends?: number
  wrong?: string
  stopped?: boolean
}
interface Explorer {
  explore(scenario: object, mistake?: string, most?: number): Found
}
interface Scenarios {
  logScenarios: Record<string, object>
  logMistakes: Record<string, string>
}
const folder = new URL('../../../test/model/', import.meta.url)
const { explore }: Explorer = await import(new URL('log.mjs', folder).href)
const { logScenarios, logMistakes }: Scenarios = await import(new URL('log-scenarios.mjs', folder).href)

for (const name of shareOf(Object.keys(logScenarios), 20)) {
  test(`holds at every interleaving: ${name}`, () => {
    const found = explore(logScenarios[name]!)
    assert.is(found.wrong, undefined)
    assert.is(found.stopped, undefined)
    assert.ok(found.ends! > 0)
  })
}

const names = Object.keys(logMistakes)

for (const mistake of names) {
  test(`fails without this rule: ${mistake}`, () => {
    assert.type(explore(logScenarios[logMistakes[mistake]!]!, mistake).wrong, 'string')
  })
}

test.run()
