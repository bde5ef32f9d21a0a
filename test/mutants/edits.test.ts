// Each mistake is an edit of the code as it is. The long tests alone make all of them.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { BUILT, editedFiles } from '../explore/copy.js'
import { all } from './all.js'

test('the text that a mistake replaces occurs once', async () => {
  const stale: string[] = []
  for (const [name, { edits }] of Object.entries(all))
    await editedFiles(BUILT, edits).catch((error) => stale.push(`${name}: ${error.message}`))
  assert.equal(stale, [])
})

test.run()
