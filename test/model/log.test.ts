// run: typescript, first, also-full
// Small scenarios of the model of the sliding log. The full size runs a fifth of the others each day; `npm run model`
// runs all of them.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { shareOfToday, sized } from '../size.js'

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

const QUICK = [
  'a refund and deaths',
  'given back',
  'given back late beside refunds',
  'two keys, to and fro',
  'two keys and a refund',
].map((name) => `sliding log: ${name}`)

for (const name of sized({ quick: QUICK, full: shareOfToday(Object.keys(logScenarios)) })) {
  test(`holds at every interleaving: ${name}`, () => {
    const found = explore(logScenarios[name]!)
    assert.is(found.wrong, undefined)
    assert.is(found.stopped, undefined)
    assert.ok(found.ends! > 0)
  })
}

/** These mistakes need more states. */
const LONG = [
  'a look at the tick that forgets the date',
  'committed again in its epoch',
  'swept without a look at the tick',
].map((name) => `sliding log: ${name}`)
const names = Object.keys(logMistakes)

for (const mistake of sized({ quick: names.filter((name) => !LONG.includes(name)), full: names })) {
  test(`fails without this rule: ${mistake}`, () => {
    assert.type(explore(logScenarios[logMistakes[mistake]!]!, mistake).wrong, 'string')
  })
}

test.run()
