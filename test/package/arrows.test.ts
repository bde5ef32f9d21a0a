// What may import what in src/: a row for each folder. Imports point down the rows, and no files import each other in a
// circle, not even their types.
import { builtinModules } from 'node:module'
import { posix } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { importsOf, readText, sourcesIn, withoutComments } from './root.js'

/** By folder, from the outside inward: the other folders that it may import. '.' is what stands in no folder. */
const ROWS: Readonly<Record<string, string>> = {
  metrics: 'http fetch remote api core',
  '.': 'create policies groups http/headers limiters api engines shared-file memory config config/stores/file core',
  http: 'http/addresses http/groups http/headers http/nest http/routes create api memory core',
  'http/addresses': 'http core',
  'http/groups': 'http http/addresses http/headers http/routes groups api memory core',
  'http/headers': 'http http/routes api core',
  'http/nest': 'http http/addresses http/groups http/routes api core',
  'http/routes': 'http http/addresses http/headers create api memory core',
  fetch: 'limiters api core',
  compat: 'create api core',
  redis:
    'redis/clients redis/counting redis/groups redis/leases redis/packed redis/shards values remote policies groups memory api core',
  'redis/clients': 'remote core',
  'redis/counting': 'redis redis/clients values remote core',
  'redis/groups': 'redis redis/clients redis/packed remote remote/restoring groups api engines memory core',
  'redis/leases': 'redis redis/packed remote memory engines core',
  'redis/packed': 'redis redis/clients redis/counting remote remote/restoring engines core',
  'redis/shards': 'redis/clients remote api engines core',
  memcached: 'values remote policies api engines core',
  client: 'remote api engines core',
  backend: 'values remote policies api core',
  values: 'remote core',
  remote: 'remote/restoring create policies limiters api engines engines/inline engines/waits memory core',
  'remote/restoring': 'remote core',
  create: 'policies limiters api engines engines/pool shared-file native memory config core',
  policies: 'limiters api engines engines/inline engines/pool shared-file memory config core',
  groups: 'limiters api engines engines/waits core',
  limiters: 'api engines engines/inline engines/pool engines/waits memory core',
  api: 'engines engines/pool memory core',
  engines: 'engines/inline shared-file native memory core',
  'engines/inline': 'engines native algorithms memory core',
  'engines/pool': 'engines engines/inline native algorithms memory core',
  'engines/waits': 'core',
  'shared-file': 'native memory core',
  native: 'algorithms algorithms/log algorithms/window algorithms/word range-sum memory core',
  algorithms: 'algorithms/log algorithms/window algorithms/word memory core',
  'algorithms/log': 'algorithms algorithms/window algorithms/word range-sum memory core',
  'algorithms/window': 'algorithms algorithms/word range-sum memory core',
  'algorithms/word': 'algorithms memory core',
  'range-sum': 'memory core',
  memory: 'core',
  config:
    'config/stores/dynamodb config/stores/file config/stores/lmdb config/stores/mongodb config/stores/redis config/stores/sharded core',
  'config/stores/dynamodb': 'config core',
  'config/stores/file': 'config core',
  'config/stores/lmdb': 'config core',
  'config/stores/mongodb': 'config core',
  'config/stores/redis': 'config core',
  'config/stores/sharded': 'config core',
  core: '',
}
const LOOSE = ['index.ts', 'internal.ts']
const EXPORTED_VALUE = /^export (?:async )?(?:abstract )?(?:const|let|function\*?|class) (\w+)/gm

const folderOf = (file: string): string => posix.dirname(file)
const partOf = (folder: string): string => folder.split('/')[0]!

/** The file in src/ of a specifier, or undefined for other packages. */
function targetOf(file: string, specifier: string): string | undefined {
  if (specifier.startsWith('#millrace/')) return specifier.slice('#millrace/'.length).replace(/\.js$/, '.ts')
  if (specifier === 'millrace' || specifier.startsWith('millrace/')) return 'index.ts'
  if (!specifier.startsWith('.')) return undefined
  return posix.join(posix.dirname(file), specifier).replace(/\.js$/, '.ts')
}

function wrongArrow(file: string, specifier: string): string | undefined {
  const target = targetOf(file, specifier)
  if (target === undefined) return undefined
  const [from, to] = [folderOf(file), folderOf(target)]
  const row = ROWS[from]
  if (row === undefined) return `src/${from} has no row`
  if (from === to || row.split(' ').includes(to)) return undefined
  return `src/${file} imports ${specifier}: ${from} must not know ${to}`
}

/** The files that lie in a circle of imports with a file. */
function circleOf(start: string, importsBy: ReadonlyMap<string, readonly string[]>): string[] {
  const seen = new Set<string>()
  const isBack = (file: string): boolean => {
    if (file === start) return true
    if (seen.has(file)) return false
    seen.add(file)
    return (importsBy.get(file) ?? []).some(isBack)
  }
  return (importsBy.get(start) ?? []).filter(isBack)
}

const files = sourcesIn('src')
const imports = files.flatMap((file) =>
  importsOf(readText(`src/${file}`)).map((specifier) => ({ file, specifier })),
)

test('every import within src/ is in the row of its folder', () => {
  assert.ok(imports.length > 50, `only ${imports.length} imports were found`)
  assert.equal(
    imports.map(({ file, specifier }) => wrongArrow(file, specifier)).filter((wrong) => wrong !== undefined),
    [],
  )
})

test('every row is that of a folder, names folders, and points down', () => {
  const folders = Object.keys(ROWS)
  assert.equal([...folders].sort(), [...new Set(files.map(folderOf))].sort())
  const parts = [...new Set(folders.map(partOf))]
  for (const [folder, row] of Object.entries(ROWS)) {
    for (const other of row === '' ? [] : row.split(' ')) {
      assert.ok(folders.includes(other), `${folder}: ${other}`)
      const [from, to] = [parts.indexOf(partOf(folder)), parts.indexOf(partOf(other))]
      assert.ok(from <= to, `${folder} names ${other}, which is further out`)
    }
  }
})

test('the map in CONTRIBUTING.md has a row for each folder of src/', () => {
  const map = [...readText('CONTRIBUTING.md').matchAll(/^\| `src\/([^`]*?)\/?` \|/gm)].map(
    ([, path]) => path || '.',
  )
  assert.equal(map.sort(), Object.keys(ROWS).sort())
})

test('every file is in a folder but the two that others import', () => {
  assert.equal(
    files.filter((file) => folderOf(file) === '.'),
    LOOSE,
  )
})

test('no files import each other in a circle', () => {
  const importsBy = new Map(files.map((file) => [file, [] as string[]]))
  for (const { file, specifier } of imports) {
    const target = targetOf(file, specifier)
    if (target !== undefined) importsBy.get(file)!.push(target)
  }
  const circles = files.filter((file) => circleOf(file, importsBy).length > 0)
  assert.equal(circles, [])
  importsBy.get('core/errors.ts')!.push('core/rule.ts')
  assert.ok(circleOf('core/rule.ts', importsBy).length > 0, 'the check finds one')
})

test('the check finds imports that are in no row', () => {
  for (const [file, specifier] of [
    ['core/rule.ts', '../memory/layout.js'],
    ['core/rule.ts', '#millrace/memory/layout.js'],
    ['memory/arena.ts', '../algorithms/window/ring.js'],
    ['memory/arena.ts', '../engines/inline/inline.js'],
    ['algorithms/window/ring.ts', '../../engines/inline/inline.js'],
    ['algorithms/window/ring.ts', '../../api/limiter.js'],
    ['engines/inline/inline.ts', '../../index.js'],
    ['engines/inline/inline.ts', 'millrace'],
    ['limiters/rules-limiter.ts', '../native/addon.js'],
    ['nowhere/new.ts', './other.js'],
    ['nowhere/new.ts', '../core/rule.js'],
  ] as const) {
    assert.type(wrongArrow(file, specifier), 'string', `${file} -> ${specifier}`)
  }
  for (const [file, specifier] of [
    ['core/rule.ts', './errors.js'],
    ['core/clock.ts', 'node:process'],
    ['memory/arena.ts', '../core/rule.js'],
    ['engines/inline/inline.ts', '../../algorithms/select.js'],
    ['index.ts', './create/create.js'],
  ] as const) {
    assert.is(wrongArrow(file, specifier), undefined, `${file} -> ${specifier}`)
  }
})

test('imports of every form are found, and none in comments', () => {
  const source = `
    import { a } from './a.js' // from './comment.js'
    import type { B } from "./b.js"
    import c, {
      type d,
    } from './c.js'
    export * from './d.js'
    export { type E } from './e.js'
    import './f.js'
    /* import './block.js' */
    const g = await import('./g.js')
    new Worker(new URL('./h.js', import.meta.url))
    const text = "// './text.js'"
  `
  const found = ['./a.js', './b.js', './c.js', './d.js', './e.js', './f.js', './g.js', './h.js']
  assert.equal(importsOf(source).sort(), found)
  for (const file of files) {
    const lines =
      withoutComments(readText(`src/${file}`)).match(/^(?:import\b(?!\.).*|.*\bfrom ['"].*)$/gm) ?? []
    const starts = lines.filter((line) => /['"]/.test(line)).length
    assert.ok(importsOf(readText(`src/${file}`)).length >= starts, `src/${file}`)
  }
})

test('what is loaded at first use has the types of that file', () => {
  const load = /\brequire\('(\.[^']+)'\)(?: as typeof import\('([^']+)'\))?/g
  const loads = files.flatMap((file) =>
    [...readText(`src/${file}`).matchAll(load)].map(([, path, types]) => ({ file, path, types })),
  )
  assert.ok(loads.length > 0)
  assert.equal(
    loads.filter(({ file, path, types }) => path !== types && file !== 'core/lazily.ts'),
    [],
  )
})

test('every imported file exists', () => {
  for (const { file, specifier } of imports) {
    const target = targetOf(file, specifier)
    if (target !== undefined) assert.ok(files.includes(target), `src/${file} imports ${specifier}`)
  }
})

/** The names of the packages that a package imports. */
function outsideOf(folder: string): { file: string; specifier: string; name: string }[] {
  return sourcesIn(folder).flatMap((file) =>
    importsOf(readText(`${folder}/${file}`))
      .filter((specifier) => !specifier.startsWith('.') && !specifier.startsWith('#'))
      .map((specifier) => {
        const parts = specifier.split('/').slice(0, specifier.startsWith('@') ? 2 : 1)
        return { file, specifier, name: parts.join('/') }
      }),
  )
}

const isBuiltin = (specifier: string): boolean =>
  specifier.startsWith('node:') && builtinModules.includes(specifier.slice('node:'.length))

for (const [folder, manifest] of [
  ['src', 'package.json'],
  ['cli/src', 'cli/package.json'],
  ['service/src', 'service/package.json'],
] as const) {
  const {
    dependencies = {},
    optionalDependencies = {},
    peerDependencies = {},
  } = JSON.parse(readText(manifest))

  test(`${folder} imports only builtins with the node: prefix and declared dependencies`, () => {
    const declared = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })
    for (const { file, specifier, name } of outsideOf(folder)) {
      assert.ok(isBuiltin(specifier) || declared.includes(name), `${folder}/${file} imports ${specifier}`)
    }
  })

  test(`${folder} imports every dependency of ${manifest}`, () => {
    const imported = outsideOf(folder).map(({ name }) => name)
    for (const name of Object.keys(dependencies)) assert.ok(imported.includes(name), name)
  })
}

test('the library has four dependencies and no install or pack script', () => {
  const { dependencies, scripts } = JSON.parse(readText('package.json'))
  assert.equal(Object.keys(dependencies), ['ipaddr.js', 'lru-cache', 'node-gyp-build', 'piscina'])
  for (const when of ['preinstall', 'install', 'postinstall', 'prepare', 'prepack', 'postpack'])
    assert.is(scripts[when], undefined, when)
})

test('the command and the service have the version of the library that they depend on', () => {
  const { version } = JSON.parse(readText('package.json'))
  for (const file of ['cli/package.json', 'service/package.json']) {
    const own = JSON.parse(readText(file))
    assert.equal([own.version, own.dependencies.millrace], [version, version], file)
  }
})

test('memory/, algorithms/ and range-sum/ access shared words only through memory/words.ts', () => {
  const touches = (source: string) => /\bAtomics\b/.test(withoutComments(source))
  assert.ok(touches(readText('src/memory/words.ts')), 'the check finds what is there')
  const others = files.filter(
    (file) => /^(memory|algorithms|range-sum)\//.test(file) && file !== 'memory/words.ts',
  )
  assert.ok(others.length > 5)
  assert.equal(
    others.filter((file) => touches(readText(`src/${file}`))),
    [],
  )
})

test('what a file of a package exports as a value is named in another file', () => {
  const packages = ['src', 'cli/src', 'service/src']
  const texts = [...packages, 'test', 'cli/test', 'bench', 'demo'].flatMap((folder) =>
    sourcesIn(folder).map((file): [string, string] => [`${folder}/${file}`, readText(`${folder}/${file}`)]),
  )
  const namedIn = new Map<string, number>()
  for (const [, text] of texts)
    for (const name of new Set(text.match(/\w+/g))) namedIn.set(name, (namedIn.get(name) ?? 0) + 1)
  const unused = texts
    .filter(([file]) => packages.some((folder) => file.startsWith(`${folder}/`)))
    .flatMap(([file, text]) =>
      [...text.matchAll(EXPORTED_VALUE)]
        .filter(([, name]) => namedIn.get(name!)! < 2)
        .map(([, name]) => `${file}: ${name}`),
    )
  assert.equal(unused, [])
  assert.is('export abstract class Unused {'.match(EXPORTED_VALUE)?.length, 1)
})

test('index.ts contains only re-exports', () => {
  const statements = withoutComments(readText('src/index.ts')).split('\n').join(' ')
  assert.is(statements.replace(/export\s+(?:type\s+)?(?:\{[^}]*\}|\*)\s+from\s+'[^']+'/g, '').trim(), '')
})

test('no file of src/ has more than 400 lines of code', () => {
  for (const file of files) {
    const lines = withoutComments(readText(`src/${file}`))
      .split('\n')
      .filter((line) => line.trim() !== '').length
    assert.ok(lines <= 400, `src/${file}: ${lines} lines`)
  }
})

test.run()
