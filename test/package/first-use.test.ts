// What most programs never use is loaded at its first use: no import of a value leads to it from the package's entry.
// `lazily` loads it, by `require`.
import { posix } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readText, withoutComments } from './root.js'

/** Imports and exports of values. Those of types are gone from the built code. */
const VALUES_FROM = /^(?:import|export) (?!type\b)[^'"]*?from '([^']+)'/gm

/** Which files of a folder are needed at once; all of a folder that is not here may be. */
const AT_ONCE: Readonly<Record<string, readonly string[]>> = {
  'algorithms/log': [],
  'algorithms/word': ['cell-time.ts'],
  config: [],
  'engines/pool': [],
  'engines/waits': [],
  groups: ['group.ts'],
  policies: [],
  'range-sum': ['linear.ts', 'range-sum.ts', 'select.ts'],
  'shared-file': ['agreement.ts', 'machine.ts'],
}
/** Modules of Node.js that load dozens of others, and packages. */
const NEVER_AT_ONCE = /^(?!\.)(?!node:(?:diagnostics_channel|fs|module|path|process|url)$)/
const MOST_FILES = 95

/** The files and the other modules that are loaded with a file. */
function loadedWith(file: string, files = new Set<string>(), others = new Set<string>()) {
  files.add(file)
  for (const [, specifier] of withoutComments(readText(`src/${file}`)).matchAll(VALUES_FROM)) {
    if (!specifier!.startsWith('.')) others.add(specifier!)
    else {
      const target = posix.join(posix.dirname(file), specifier!).replace(/js$/, 'ts')
      if (!files.has(target)) loadedWith(target, files, others)
    }
  }
  return { files: [...files], others: [...others] }
}

test('the entry loads at once what every limiter needs, and no more', () => {
  const { files, others } = loadedWith('index.ts')
  assert.ok(files.includes('algorithms/window/sliding-window.ts'), 'imports are followed')
  const early = files.filter((file) => AT_ONCE[posix.dirname(file)]?.includes(posix.basename(file)) === false)
  assert.equal(early, [])
  assert.equal(
    others.filter((name) => NEVER_AT_ONCE.test(name)),
    [],
  )
  assert.ok(files.length <= MOST_FILES, `${files.length} files`)
})

test.run()
