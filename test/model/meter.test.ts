// run: typescript, first, also-full, also-long
// Small scenarios of the model of fixed windows and token buckets. The full size runs a tenth of those that take
// seconds, `npm run test:long` all of them, and `npm run dev -- model` the largest too.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { shareOf, sized } from '../size.js'

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
  meterScenarios: Record<string, object>
  meterMistakes: Record<string, string>
}
const folder = new URL('../../../test/model/', import.meta.url)
const { explore }: Explorer = await import(new URL('meter.mjs', folder).href)
const { meterScenarios, meterMistakes }: Scenarios = await import(new URL('meter-scenarios.mjs', folder).href)

const named = (prefix: string, names: readonly string[]) => names.map((name) => `${prefix}: ${name}`)
const QUICK = [
  ...named('token bucket', [
    'epochs go round by refunds',
    'to and fro, elsewhere',
    'elsewhere, a way with counts',
    'two keys, to and fro',
    'hops without an admission',
    'a stall of one lap',
  ]),
  ...named('fixed window', [
    'epochs go round by refunds',
    'a refund that counts itself late',
    'given back after a block and a refund by key',
    'to and fro, elsewhere',
    'elsewhere, a way with counts',
    'two keys, to and fro',
  ]),
]
/** They take a second each. */
const SLOWER = named('fixed window', [
  'given back, and a refund by key',
  'given back after a block',
  'penalties',
])
/** This scenario takes two minutes: `npm run dev -- model` runs it. */
const LARGE = ['token bucket: three threads, long gaps']
const FULL = Object.keys(meterScenarios).filter((name) => !LARGE.includes(name))

for (const name of sized({
  quick: QUICK,
  full: [
    ...SLOWER,
    ...shareOf(
      FULL.filter((name) => !SLOWER.includes(name)),
      20,
    ),
  ],
})) {
  test(`holds at every interleaving: ${name}`, () => {
    const found = explore(meterScenarios[name]!)
    assert.is(found.wrong, undefined)
    assert.is(found.stopped, undefined)
    assert.ok(found.ends! > 0)
  })
}

/** These mistakes need more states. */
const LONG = [
  'token bucket: refused on one look',
  'token bucket: refund in the same epoch',
  'token bucket: given back by the TAT it left',
  'token bucket: given back by an old clock',
  'fixed window: refund in the same epoch',
]
const MISTAKES = Object.keys(meterMistakes)

for (const mistake of sized({ quick: MISTAKES.filter((name) => !LONG.includes(name)), full: MISTAKES })) {
  test(`with one rule left out it fails: ${mistake}`, () => {
    assert.type(explore(meterScenarios[meterMistakes[mistake]!]!, mistake).wrong, 'string')
  })
}

test.run()
