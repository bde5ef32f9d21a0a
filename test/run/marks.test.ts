// run: typescript
// The runner reads marks from the built files, and tsc drops the comment above an import of types unless an empty line
// is between them.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { root } from '../package/root.js'
import { testFiles } from './files.js'

const ENDING = '.test.ts'

/** The marks in the source of each test file that has some, by the name of the built file. */
function marksIn(folder: string, prefix = ''): [string, string[]][] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(ENDING))
    .flatMap((file): [string, string[]][] => {
      const [, list] = /^\/\/ run: (.*)$/m.exec(readFileSync(join(root, folder, file), 'utf8')) ?? []
      const name = `${prefix}${file.replaceAll('\\', '/').slice(0, -ENDING.length)}`
      return list === undefined ? [] : [[name, list.split(', ')]]
    })
}

test('a test file that was built has the marks of its source', () => {
  const built = new Map(testFiles(root).map(({ name, marks }) => [name, [...marks]]))
  const written = [...marksIn('test'), ...marksIn('cli/test', 'cli/')]
  assert.ok(written.length > 100, `${written.length} files with marks`)
  for (const [name, marks] of written) assert.equal(built.get(name), marks, name)
})

test('no test file imports others while their tests may have begun', () => {
  for (const { name, path } of testFiles(root))
    assert.not.match(
      readFileSync(path, 'utf8'),
      /\bimport\([^)]*\.test\.js/,
      `${name}: import them statically`,
    )
})

test.run()
