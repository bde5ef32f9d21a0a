// CONTRIBUTING.md's map leads to what a new contributor looks for, in two clicks: a link of the row, and an import.
import { posix } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { linksOf } from './markdown.js'
import { importsOf, readText } from './root.js'

/** What is looked for, the row where one begins, and the text of the place. */
const PLACES: readonly (readonly [what: string, row: string, text: string])[] = [
  ['the decision of a limiter in memory', 'src/engines/inline/', '  checkNow('],
  ['the decision of a sliding window', 'src/algorithms/window/', '  attempt('],
  ['the decision by several rules', 'src/engines/inline/', 'class RulesEngine'],
  ['the decision on any store of values', 'src/values/', 'export function decide('],
  ['the deadline of a call to Redis', 'src/redis/', 'this.#deadlines.add(call)'],
  ['how a deadline expires', 'src/redis/', '  expireAll('],
  ['the deadline of other stores', 'src/remote/', 'new Deadlines('],
  ['the check of an option of a rule', 'src/core/', 'function checkWindow('],
  ['the check of an option of a limiter', 'src/create/', "throw invalid('maxKeys'"],
  ['the check of an option of every store', 'src/redis/', "throw invalid('onOutage'"],
  ['the check of an option of a framework', 'src/http/', "throw invalid('ban'"],
  ['the check of an argument', 'src/api/', 'export function checkCost('],
  ['the text of Retry-After', 'src/http/headers/', "'Retry-After'"],
  ['the text of RateLimit-Policy', 'src/http/headers/', ';q='],
]

const rows = new Map(
  [...readText('CONTRIBUTING.md').matchAll(/^\| `(src\/[^`]*)` \| (.*) \|$/gm)].map(
    ([, folder, text]) => [folder!, linksOf(text!)] as const,
  ),
)

for (const [what, row, text] of PLACES)
  test(`${what}: two clicks from the map`, () => {
    const first = rows.get(row)
    assert.ok(first !== undefined && first.length > 0, `${row} has a row with links`)
    const second = first.flatMap((file) =>
      importsOf(readText(file))
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => posix.join(posix.dirname(file), specifier.replace(/\.js$/, '.ts'))),
    )
    assert.ok(
      [...first, ...second].some((file) => readText(file).includes(text)),
      text,
    )
  })

test.run()
