// run: typescript, first, also-full, also-long
// Small scenarios of the protocol's model. The full size runs a tenth of those that take seconds, `npm run test:long` all
// of them, and `npm run dev -- model` the larger ones too (two hours).
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
  scenarios: Record<string, object>
  mistakes: Record<string, string>
}
const folder = new URL('../../../test/model/', import.meta.url)
const { explore }: Explorer = await import(new URL('explorer.mjs', folder).href)
const { scenarios, mistakes }: Scenarios = await import(new URL('scenarios.mjs', folder).href)

const QUICK = [
  'an epoch goes round',
  'an epoch goes round by blocks',
  'refunds before and after',
  'block sums: one bucket idle for exactly all laps',
  'two rules: two admit on the last units',
  'a reservation and a refund by key',
  'two convert at once',
  'a blocked key that two convert',
  'a block that ends for another while one converts',
  'a full key that rests',
  'a past that the shorter window counts, too',
]
/** These scenarios take up to fifteen seconds each. */
const FULL = [
  ...QUICK,
  'idle for exactly all laps',
  'a refund among decisions',
  'a sum among charges',
  'given back after all laps',
  'two keys swap ways',
  'live eviction',
  'refunds by key while an admission is given back',
  'a sunk bucket',
  'a refund while its way is reused',
  'a block among decisions',
  'a key blocked again while its way goes to another',
  'a death while deciding',
  'two rules: the second refuses',
  'two rules: a rollover between the two charges',
  'two rules: a refund by key before a charge is given back',
  'two rules: a death',
  'groups with their members in opposite orders',
  'a reservation settled by less',
  'a reservation settled by more',
  'a reservation and a death',
  'a conversion and a late decision',
  'a conversion into a shorter window and a late decision',
  'a death while converting',
  'a death while two convert',
  'a key that two records insert',
  'a second change while one converts',
  'a second change before a late count',
  'a death, and a second change',
  'two changes at once',
  'a refund while one converts',
  'an admission given back while one converts',
  'a block while one converts',
  'a blocked key converted',
  'a block that ends while one converts',
  'a blocked way claimed while its key is converted',
  'a key inserted while the window changes',
  'another key takes over the counts of an old record',
  ...['block sums', 'block sums on two levels', 'a Fenwick tree'].flatMap((sums) =>
    [
      'two charges at the turn of a lap',
      'a refund among decisions',
      'one bucket idle for exactly all laps',
      'a death in the middle of a charge',
    ].map((what) => `${sums}: ${what}`),
  ),
]

for (const name of sized({ quick: QUICK, full: shareOf(FULL, 20) })) {
  test(`holds at every interleaving: ${name}`, () => {
    const found = explore(scenarios[name]!)
    assert.is(found.wrong, undefined)
    assert.is(found.stopped, undefined)
    assert.ok(found.ends! > 0)
  })
}

/**
 * These mistakes need millions of states: `npm run dev -- model --broken` finds them, and `test/mutants/` has
 * them in the built code.
 */
const LONG = [
  'bucket read before its turn',
  'unsettled',
  'fenwick sum unchecked',
  'placed by an ended record',
  'given back while converting',
]
/** These mistakes need about a thousand states at most. */
const SHORT = [
  'no sweep',
  'asOf without epoch',
  'refund without mark',
  'one UNTIL for two blocks',
  'ends left as they are',
  'claim without epoch',
  'no scan',
  'new lap above old counts',
  'a refusal keeps its charges',
  'the refused rule given back',
  'rules decided after a refusal',
  'given back by units alone',
  'a part given back as a whole',
  'the total carried',
  'left at the old tick',
  'no carry',
  'carried twice',
  'taken out by the one that finishes',
  'unsunk',
  'a block ended while converting',
  'remembers nothing',
  'a past on top of what is carried',
  'not in the total',
]

for (const mistake of sized({ quick: SHORT, full: shareOf(Object.keys(mistakes), 10) })) {
  if (LONG.includes(mistake)) continue
  test(`with one rule left out it fails: ${mistake}`, () => {
    assert.type(explore(scenarios[mistakes[mistake]!]!, mistake).wrong, 'string')
  })
}

test.run()
