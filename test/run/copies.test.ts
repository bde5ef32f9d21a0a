// run: typescript
// A process has one copy of the package's modules: those of build/lib/, or the bundle in dist/. What runs on dist/ takes
// from build/lib/ only what works without the state and the classes of the rest.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { importsOf, root } from '../package/root.js'
import { testFiles } from './files.js'
import { isOnBundle } from './plan.js'

/** Constants, pure functions, and functions of shared memory. */
const WITHOUT_STATE = new Set(
  [
    'config/stores/redis/redis-script core/algorithms core/rendezvous core/rule-algorithms core/rule-options core/sizes',
    'memcached/counter-names memory/arenas memory/layout memory/records memory/text redis/clients/slots',
    'redis/script-codes',
    'redis/shards/split-names remote/answers remote/key-names remote/sliding-counter shared-file/machine',
  ].flatMap((names) => names.split(' ').map((name) => `#millrace/${name}.js`)),
)

/** The modules of build/lib/ that a built file loads, itself or by the files that it imports. */
function modulesOf(path: string, seen = new Set<string>()): string[] {
  if (seen.has(path) || !existsSync(path)) return []
  seen.add(path)
  const imports = importsOf(readFileSync(path, 'utf8'))
  return imports.flatMap((specifier) => {
    if (specifier.startsWith('.')) return modulesOf(join(dirname(path), specifier), seen)
    return specifier.startsWith('#millrace/') ? [specifier] : []
  })
}

const bundled = testFiles(root).filter(isOnBundle)

test('what runs on dist/ loads no module of build/lib/ that has state', () => {
  assert.ok(bundled.length > 80, `${bundled.length} files`)
  const mixed = bundled.flatMap(({ name, path }) =>
    modulesOf(path)
      .filter((module) => !WITHOUT_STATE.has(module))
      .map((module) => `${name} loads ${module}`),
  )
  assert.equal(mixed, [])
})

test('by default `millrace` is the modules that tests load one by one; with the condition it is dist/', async () => {
  const isModules = process.execArgv.length === 0 && !/millrace-bundle/.test(process.env.NODE_OPTIONS ?? '')
  assert.ok(isModules, 'this file runs on build/lib/')
  const [{ MillraceError }, errors] = await Promise.all([
    import('millrace'),
    import('#millrace/core/errors.js'),
  ])
  assert.is(MillraceError, errors.MillraceError)
})

test.run()
