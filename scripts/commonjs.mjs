// Generates dist/ from esm/: the same files as CommonJS, and per entry of the package (`entries.mjs`) a CommonJS
// and an ES module that re-export its names. Node.js loads dist/ with `import` and with `require`, so a process has
// one copy of the package's state. Bundlers use esm/, which supports tree shaking.
//
// An optional peer dependency that is missing is a MillraceError. Node.js 20 ends the process if a CommonJS module
// throws while `import` loads it, although the error is caught. So the ES modules of entries that need a peer load
// their CommonJS by `require`.
//
// Imports become constants, `const { read } = require('./words.js')`. tsc would emit `(0,
// words_js_1.read)(...)` at each use, which makes decisions slower.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'acorn'
import { ENTRIES } from './entries.mjs'
import { foldConstants } from './fold-constants.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const IMPORT = /^(?:import|export)\b[^'"]*\bfrom '([^']+)'/gm
const META_URL = /\bimport\.meta\.url\b/g
const OWN_REQUIRE =
  /^import \{ createRequire \} from 'node:module';\n([\s\S]*?)^const require = createRequire\(import\.meta\.url\);\n/m
const LAZY_LOAD = /\brequire\('(\.[^']+)'\)/g

/** Writes dist/ of a package folder, which already has the declarations from tsc. */
export function writeCommonJS(folder) {
  const [from, to] = [join(folder, 'esm'), join(folder, 'dist')]
  const files = readdirSync(from, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.js') && !/^entries\b/.test(file),
  )
  const codes = new Map(files.map((file) => [file, readFileSync(join(from, file), 'utf8')]))
  const peers = peersOf(folder)
  for (const [file, code] of foldConstants(codes)) write(to, file, toCommonJS(code, file, peers))
  for (const [file, code] of codes) if (OWN_REQUIRE.test(code)) write(from, file, withoutRequire(code))
  write(to, 'package.json', '{ "type": "commonjs" }\n')
  writeWrappers(to, 'index', './index.js', exportedNames(codes.get('index.js')), false)
  for (const [subpath, source] of Object.entries(ENTRIES)) {
    const entry = `entries/${subpath}`
    const names = exportedNames(codes.get(`${source}.js`))
    const file = `${posix.relative(dirname(entry), source)}.js`
    const all = reexported(names, file)
    write(from, `${entry}.js`, all)
    write(to, `${entry}.js`, toCommonJS(`export { ${names.join(', ')} } from '${file}'\n`, `${entry}.js`))
    write(to, `${entry}.d.ts`, all)
    writeWrappers(to, entry, file, names, needsPeer(`${source}.js`, codes, peers))
  }
}

function write(folder, file, text) {
  mkdirSync(dirname(join(folder, file)), { recursive: true })
  writeFileSync(join(folder, file), text)
}

function peersOf(folder) {
  const { peerDependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  return new Set(Object.keys(peerDependencies))
}

/** An ES module that loads at once what `lazily` would load at first use: bundlers find it, and remove what is unused. */
function withoutRequire(code) {
  const imports = []
  const body = code.replace(OWN_REQUIRE, '$1').replace(LAZY_LOAD, (_, source) => {
    const name = `lazy${imports.length + 1}`
    imports.push(`import * as ${name} from '${source}';\n`)
    return name
  })
  return imports.join('') + body
}

/** Whether a file imports a peer, or a file that does. */
function needsPeer(file, codes, peers, seen = new Set()) {
  if (seen.has(file)) return false
  seen.add(file)
  return Array.from(codes.get(file).matchAll(IMPORT), ([, source]) => source).some((source) =>
    source.startsWith('.')
      ? needsPeer(posix.join(dirname(file), source), codes, peers, seen)
      : peers.has(source),
  )
}

/** Writes an ES module, and its types, with the names that a CommonJS file exports. */
function writeWrappers(folder, entry, file, names, byRequire) {
  const others = names.filter((name) => name !== 'default')
  const all = byRequire
    ? `import { createRequire } from 'node:module'\nconst all = createRequire(import.meta.url)('${file}')\n`
    : `import all from '${file}'\n`
  const named = byRequire
    ? `${all}export const { ${others.join(', ')} } = all\n`
    : `export { ${others.join(', ')} } from '${file}'\n`
  const whole = `${byRequire ? '' : all}export default all.default\n`
  write(folder, `${entry}.mjs`, others.length === names.length ? named : named + whole)
  write(folder, `${entry}.d.mts`, reexported(names, file))
}

/** A module that exports all that a file does, also a default. */
function reexported(names, file) {
  const others = `export * from '${file}'\n`
  return names.includes('default') ? `${others}export { default } from '${file}'\n` : others
}

/** Converts an ES module emitted by tsc. @throws Error for syntax that src/ does not use */
export function toCommonJS(source, file, peers = new Set()) {
  const code = source.replace(OWN_REQUIRE, '$1')
  const edits = []
  const hoisted = [] // functions can be exported before the first statement runs
  const exported = []
  const unsupported = (node) =>
    new Error(`${file}: cannot convert to CommonJS: ${code.slice(node.start, node.end)}`)
  for (const node of parse(code, { ecmaVersion: 'latest', sourceType: 'module' }).body) {
    const replace = (text) => edits.push({ start: node.start, end: node.end, text })
    if (node.type === 'ImportDeclaration') {
      const load = `require(${node.source.raw})`
      const isPeer = peers.has(node.source.value)
      if (isPeer)
        hoisted.push(`const { loadPeer } = require('./${posix.relative(dirname(file), 'core/peer.js')}');`)
      replace(`${boundNames(node, unsupported)}${isPeer ? `loadPeer(() => ${load})` : load};`)
    } else if (node.type === 'ExportNamedDeclaration' && node.source) {
      replace(
        node.specifiers
          .map((s) => `exports.${s.exported.name} = require(${node.source.raw}).${s.local.name};`)
          .join('\n'),
      )
    } else if (node.type === 'ExportNamedDeclaration' && node.declaration) {
      const { declaration } = node
      if (declaration.type === 'VariableDeclaration' && declaration.kind !== 'const') throw unsupported(node)
      edits.push({ start: node.start, end: declaration.start, text: '' })
      const names = namesOf(declaration)
      const isFunction = declaration.type === 'FunctionDeclaration'
      ;(isFunction ? hoisted : exported).push(...names.map((name) => `exports.${name} = ${name};`))
    } else if (node.type === 'ExportNamedDeclaration') {
      replace('')
      exported.push(...node.specifiers.map((s) => `exports.${s.exported.name} = ${s.local.name};`))
    } else if (node.type.startsWith('Export')) throw unsupported(node)
  }
  for (const { index } of code.matchAll(META_URL)) {
    edits.push({ start: index, end: index + 'import.meta.url'.length, text: 'importMetaUrl' })
  }
  let body = code
  for (const { start, end, text } of edits.sort((a, b) => b.start - a.start)) {
    body = body.slice(0, start) + text + body.slice(end)
  }
  const marker = "Object.defineProperty(exports, '__esModule', { value: true });"
  const head = ["'use strict';", marker, ...new Set(hoisted)]
  if (code.search(META_URL) >= 0)
    head.push("const importMetaUrl = require('node:url').pathToFileURL(__filename).href;")
  return `${[...head, body.trimEnd(), ...exported].join('\n')}\n`
}

/** `const { a, b: c } = ` for an import of `{ a, b as c }`; an empty string for an import without names. */
function boundNames(node, unsupported) {
  if (node.specifiers.length === 0) return ''
  const [first] = node.specifiers
  if (first.type === 'ImportNamespaceSpecifier') return `const ${first.local.name} = `
  // Only CommonJS packages have a default export here: it is what `require` returns.
  if (first.type === 'ImportDefaultSpecifier') return `const ${first.local.name} = `
  const names = node.specifiers.map((specifier) => {
    if (specifier.type !== 'ImportSpecifier') throw unsupported(node)
    const { imported, local } = specifier
    return imported.name === local.name ? local.name : `${imported.name}: ${local.name}`
  })
  return `const { ${names.join(', ')} } = `
}

function namesOf(declaration) {
  return (declaration.declarations ?? [declaration]).map(({ id }) => id.name)
}

/** The names that an entry exports. */
function exportedNames(code) {
  return parse(code, { ecmaVersion: 'latest', sourceType: 'module' }).body.flatMap((node) => {
    if (node.type !== 'ExportNamedDeclaration') return []
    if (node.declaration) return namesOf(node.declaration)
    return node.specifiers.map(({ exported }) => exported.name)
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeCommonJS(ROOT)
