// What depends on an option of a rule, or on an algorithm, is in its row of a table: few other files name one.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readText, sourcesIn } from './root.js'

/** By a name in the sources: in how many files it may stand. */
const MOST = [
  ['the option shadow', /\bshadow\b/, 12],
  ['the algorithm sliding-log', /'sliding-log'/, 8],
] as const

for (const [what, name, most] of MOST) {
  test(`at most ${most} files name ${what}`, () => {
    const files = sourcesIn('src').filter((file) => name.test(readText(`src/${file}`)))
    assert.ok(files.length > 0 && files.length <= most, files.join('\n'))
  })
}

test.run()
