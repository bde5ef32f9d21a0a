// Arrows point inward: http, fetch, redis and memcached -> limiter -> config, engines -> shared-file -> native
// -> algorithms -> range-sum -> memory -> core.
import { builtinModules } from 'node:module'
import { posix } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { importsOf, readText, sourcesIn, withoutComments } from './root.js'

/** The other parts that each part may import. A file's part is its folder; files at the top are `limiter`. */
const ARROWS: Record<string, string[]> = {
  core: [],
  memory: ['core'],
  'range-sum': ['memory', 'core'],
  algorithms: ['range-sum', 'memory', 'core'],
  native: ['algorithms', 'range-sum', 'memory', 'core'],
  'shared-file': ['native', 'memory', 'core'],
  engines: ['shared-file', 'native', 'algorithms', 'range-sum', 'memory', 'core'],
  config: ['core'],
  limiter: ['config', 'shared-file', 'engines', 'algorithms', 'range-sum', 'memory', 'core'],
  http: ['limiter', 'memory', 'core'],
  fetch: ['limiter', 'memory', 'core'],
  compat: ['limiter', 'core'],
  redis: ['limiter', 'engines', 'memory', 'core'],
  memcached: ['redis', 'limiter', 'engines', 'core'],
}

const partOf = (file: string): string => (file.includes('/') ? file.slice(0, file.indexOf('/')) : 'limiter')

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
  const from = partOf(file)
  const to = partOf(target)
  if (ARROWS[from] === undefined) return `src/${file} is in no part of ARROWS`
  if (from === to || ARROWS[from].includes(to)) return undefined
  return `src/${file} imports ${specifier}: ${from} must not know ${to}`
}

const files = sourcesIn('src')
const imports = files.flatMap((file) =>
  importsOf(readText(`src/${file}`)).map((specifier) => ({ file, specifier })),
)

test('every import within src/ points inward', () => {
  assert.ok(imports.length > 50, `only ${imports.length} imports were found`)
  assert.equal(
    imports.map(({ file, specifier }) => wrongArrow(file, specifier)).filter((wrong) => wrong !== undefined),
    [],
  )
})

test('the check finds imports that point outward', () => {
  for (const [file, specifier] of [
    ['core/rule.ts', '../memory/layout.js'],
    ['core/rule.ts', '#millrace/memory/layout.js'],
    ['memory/arena.ts', '../algorithms/ring.js'],
    ['memory/arena.ts', '../engines/inline.js'],
    ['algorithms/ring.ts', '../engines/inline.js'],
    ['algorithms/ring.ts', '../limiter.js'],
    ['engines/inline.ts', '../index.js'],
    ['engines/inline.ts', 'millrace'],
    ['limiter.ts', './native/addon.js'],
    ['nowhere/new.ts', './other.js'],
  ] as const) {
    assert.type(wrongArrow(file, specifier), 'string', `${file} -> ${specifier}`)
  }
  for (const [file, specifier] of [
    ['core/rule.ts', './errors.js'],
    ['core/clock.ts', 'node:process'],
    ['memory/arena.ts', '../core/rule.js'],
    ['engines/inline.ts', '../algorithms/ring.js'],
    ['index.ts', './create.js'],
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

test('the command has the version of the library that it depends on', () => {
  const [library, command] = ['package.json', 'cli/package.json'].map((file) => JSON.parse(readText(file)))
  assert.equal([command.version, command.dependencies.millrace], [library.version, library.version])
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

test('index.ts contains only re-exports', () => {
  const statements = withoutComments(readText('src/index.ts')).split('\n').join(' ')
  assert.is(statements.replace(/export\s+(?:type\s+)?(?:\{[^}]*\}|\*)\s+from\s+'[^']+'/g, '').trim(), '')
})

test('no file of src/ has more than 400 lines', () => {
  for (const file of files) {
    const lines = readText(`src/${file}`).split('\n').length
    assert.ok(lines <= 401, `src/${file}: ${lines} lines`)
  }
})

test.run()
