// Bundles build/lib/, the modules of src/, into dist/, which is published:
//
//   index.js, entries/*.js     what users import: a file for each entry of the package (`entries.mjs`)
//   chunks/*.js                code that several entries need, and code that is loaded at first use (`chunks.mjs`)
//   engines/pool/worker.js     what a pool starts as a thread
//   types/                     the declarations that those of the entries lead to
//
// All of it is CommonJS. An ES module for each entry re-exports its names: Node.js loads the same files with `import`
// and with `require`, so a process has one copy of the package's state.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rollup } from 'rollup'
import { chunkOf, importsOf, reachable } from './chunks.mjs'
import {
  CORE,
  exportedNames,
  moduleFor,
  packagesOf,
  relativePath,
  toCommonJS,
  withoutOwnRequire,
} from './commonjs.mjs'
import { ENTRIES } from './entries.mjs'
import { foldConstants } from './fold-constants.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const WORKER = 'engines/pool/worker'
/** The packages that are used as what `require` returns. An ES module has that as its default. */
const COMMONJS = new Set(['ipaddr.js', 'rate-limiter-flexible'])

/** Only the compiler reads their declarations, but for what `index` exports: docstrings there are for nobody. */
const INTERNAL =
  /^(?:memory(?!\/statistics)|algorithms|native|engines\/(?:inline|pool|waits)|values|create|shared-file|limiters|groups|policies|http\/routes|config\/stores|remote\/restoring|redis\/(?:clients|leases|packed|groups|counting))\//
const DOCSTRING = /^[ \t]*\/\*\*[\s\S]*?\*\/\n/gm
/** What a file says of itself, before its imports. */
const OF_FILE = /^\/\*\*[\s\S]*?\*\/\n(?=import |export \{)/

/** Writes dist/ of a package folder from its build/lib/. */
export async function bundlePackage(folder) {
  const [from, to] = [join(folder, 'build/lib'), join(folder, 'dist')]
  rmSync(to, { recursive: true, force: true })
  const built = readdirSync(from, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => file.endsWith('.js'))
  const read = (file) => readFileSync(join(from, file), 'utf8')
  const codes = new Map(
    [...foldConstants(new Map(built.map((file) => [file, read(file)])))].map(([file, code]) => [
      file,
      moduleFor(code, file),
    ]),
  )
  const entries = new Map([['index', 'index.js']])
  for (const [name, source] of Object.entries(ENTRIES)) entries.set(`entries/${name}`, `${source}.js`)
  const chunks = await writeChunks(codes, Object.fromEntries([...entries, [WORKER, `${WORKER}.js`]]), to)
  write(join(folder, 'build'), 'chunks.json', `${JSON.stringify(chunks, null, 2)}\n`)
  write(to, 'package.json', '{ "type": "commonjs" }\n')
  for (const [entry, source] of entries) {
    const packages = [...reachable(source, codes)].flatMap((file) => packagesOf(codes.get(file)))
    writeWrappers(to, entry, exportedNames(codes.get(source)), new Set(packages))
    writeTypes(to, entry, source, exportedNames(codes.get(source)).has('default'))
  }
  const types = new Set()
  for (const source of entries.values()) addTypes(source.replace(/js$/, 'd.ts'), types, read)
  const exported = read('index.d.ts')
  for (const file of types) {
    const isShown = !INTERNAL.test(file) || exported.includes(`'./${file.replace(/d\.ts$/, 'js')}'`)
    write(to, `types/${file}`, read(file).replace(isShown ? OF_FILE : DOCSTRING, ''))
  }
}

/** Returns the modules of each file. */
async function writeChunks(codes, input, folder) {
  const chunks = chunkOf(codes, Object.values(input))
  const bundle = await rollup({
    input,
    external: (source) => !source.startsWith('.') && !codes.has(source),
    plugins: [builtModules(codes, chunks)],
    onLog(_, { message }) {
      throw new Error(message)
    },
  })
  const { output } = await bundle.write({
    dir: folder,
    format: 'es',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name].js',
    manualChunks: chunks,
    hoistTransitiveImports: false,
    minifyInternalExports: false,
    generatedCode: 'es2015',
    plugins: [{ name: 'commonjs', renderChunk: (code, { fileName }) => toCommonJS(code, fileName) }],
  })
  await bundle.close()
  return Object.fromEntries(output.map(({ fileName, moduleIds }) => [fileName, moduleIds]))
}

/** Gives rollup the modules, and makes a chunk of each that is loaded at first use. */
function builtModules(codes, chunks) {
  const lazy = new Map() // several modules may load the same one
  return {
    name: 'built-modules',
    resolveId(source, importer) {
      const file = importer === undefined ? source : posix.join(posix.dirname(importer), source)
      return codes.has(file) ? file : null
    },
    load: (file) => codes.get(file),
    transform(code, file) {
      const chunkUrl = (source) => {
        const id = posix.join(posix.dirname(file), source)
        const name = chunks(id) ?? posix.basename(id, '.js')
        const chunk = { type: 'chunk', id, name }
        if (!lazy.has(id)) lazy.set(id, this.emitFile({ ...chunk, preserveSignature: 'allow-extension' }))
        return `import.meta.ROLLUP_FILE_URL_${lazy.get(id)}`
      }
      return withoutOwnRequire(code, (source) => (source.startsWith('.') ? chunkUrl(source) : `'${source}'`))
    },
    resolveFileUrl: ({ relativePath }) => `'${relativePath.startsWith('.') ? '' : './'}${relativePath}'`,
  }
}

/**
 * Writes the ES modules with the names of an entry. Node.js 20 ends the process if a CommonJS module throws while
 * `import` loads it (a peer dependency is missing), although the error is caught. So the module for Node.js uses
 * `require`. Bundlers take another one, whose imports they follow, also those of other packages. Bun, whose bundler goes
 * by the condition `import`, takes one that it can follow and that loads no other package.
 */
function writeWrappers(folder, entry, names, packages) {
  const base = posix.basename(entry)
  const others = [...names.keys()].filter((name) => name !== 'default')
  const load = `import { createRequire } from 'node:module'\nconst all = createRequire(import.meta.url)('./${base}.js')\n`
  const byDefault = names.has('default') ? 'export default all.default\n' : ''
  const named = `export const { ${others.join(', ')} } = all\n${byDefault}`
  write(folder, `${entry}.mjs`, load + named)
  write(folder, `${entry}.bun.mjs`, `import all from './${base}.js'\n${named}`)
  const exported = names.has('default') ? [...others, `${names.get('default')} as default`] : others
  const provided = packages.size > 0 ? `import './${base}.packages.mjs'\n` : ''
  write(folder, `${entry}.bundler.mjs`, `${provided}export { ${exported.join(', ')} } from './${base}.js'\n`)
  if (packages.size === 0) return
  const form = (name, i) => (COMMONJS.has(name) ? `package${i}` : `* as package${i}`)
  const imports = [...packages].map((name, i) => `import ${form(name, i)} from '${name}'\n`)
  imports.push(`import { providePackages } from '${relativePath(entry, CORE)}'\n`)
  const all = [...packages].map((name, i) => `'${name}': package${i}`)
  write(folder, `${entry}.packages.mjs`, `${imports.join('')}providePackages({ ${all.join(', ')} })\n`)
}

function writeTypes(folder, entry, source, hasDefault) {
  const path = relativePath(entry, `types/${source}`)
  const text = `export * from '${path}'\n${hasDefault ? `export { default } from '${path}'\n` : ''}`
  for (const ending of ['d.ts', 'd.mts']) write(folder, `${entry}.${ending}`, text)
}

/** Adds a file of declarations, and those that it imports. */
function addTypes(file, types, read) {
  if (types.has(file)) return
  types.add(file)
  for (const other of importsOf(read(file), file)) addTypes(other.replace(/js$/, 'd.ts'), types, read)
}

function write(folder, file, text) {
  mkdirSync(dirname(join(folder, file)), { recursive: true })
  writeFileSync(join(folder, file), text)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundlePackage(ROOT)
