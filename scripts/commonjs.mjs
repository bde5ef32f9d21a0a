// Turns ES modules that tsc has emitted into the CommonJS of dist/.
//
// Imports become constants, `const { read } = require('./words.js')`. tsc and bundlers would emit `words.read(...)` at
// each use, which makes decisions slower. Modules of Node.js come from `process.getBuiltinModule`: a bundle of ES
// modules has no `require` for them.
import { dirname, posix } from 'node:path'
import { parse } from 'acorn'

const META_URL = /\bimport\.meta\.url\b/g
/** How a module loads others at first use: see src/core/lazily.ts. */
const OWN_REQUIRE =
  /^import \{ createRequire \} from 'node:module';\n([\s\S]*?)^const require = createRequire\(import\.meta\.url\);\n/m
const LAZY_LOAD = /\brequire\('([^']+)'\)/g

/** The modules that a module loads at first use. */
export function lazyLoads(code) {
  const loads = OWN_REQUIRE.test(code) ? code.matchAll(LAZY_LOAD) : []
  return Array.from(loads, ([, source]) => source).filter((source) => source.startsWith('.'))
}

/** Of these, the modules that only the creation of some limiters needs. */
export const creationLoads = (code) =>
  Array.from(code.matchAll(/\brequire\('([^']+)'\), 'creation'\)/g), ([, source]) => source)

/** The code of a module with the `require` of CommonJS instead of its own, for paths that `pathOf` gives. */
export function withoutOwnRequire(code, pathOf) {
  if (!OWN_REQUIRE.test(code)) return code
  return code.replace(OWN_REQUIRE, '$1').replace(LAZY_LOAD, (_, source) => `require(${pathOf(source)})`)
}

/** A module of src/ for the bundler: without comments, and with other packages loaded by `loadPackage`. */
export function moduleFor(code, file) {
  const edits = []
  const onComment = (_, text, start, end) => {
    if (!/^[#@]__/.test(text)) edits.push({ start, end, text: '' })
  }
  for (const node of parse(code, { ecmaVersion: 'latest', sourceType: 'module', onComment }).body) {
    if (node.type !== 'ImportDeclaration' || /^(\.|node:)/.test(node.source.value)) continue
    const text = `${boundNames(node, code)}${packageOf(node.source.value)};`
    edits.push({ start: node.start, end: node.end, text })
  }
  let body = edited(code, edits).replace(/^[ \t]*\n/gm, '')
  if (OWN_REQUIRE.test(body)) {
    body = body.replace(LAZY_LOAD, (load, source) => (source.startsWith('.') ? load : packageOf(source)))
  }
  if (!LOADED.test(body)) return body
  return `import { loadPackage } from './${posix.relative(dirname(file), 'core/packages.js')}';\n${body}`
}

const packageOf = (name) => `loadPackage('${name}', () => require('${name}'))`
const LOADED = /\bloadPackage\('([^']+)',/

/** The other packages that a module of {@link moduleFor} loads. */
export function packagesOf(code) {
  return Array.from(code.matchAll(new RegExp(LOADED, 'g')), ([, name]) => name)
}

/** The chunk that every file of dist/ leads to, and which says what is missing. */
export const CORE = 'chunks/core.js'
const NODE_IMPORT = /^import .*'node:/m
/**
 * Where there are no modules of Node.js, a `process.getBuiltinModule` that is not there would be all that is said. That of
 * Next.js's edge runtime throws when it is read.
 */
const RUNTIME_CHECK = `if ('EdgeRuntime' in globalThis || typeof globalThis.process?.getBuiltinModule !== 'function') {
    throw new Error(
        'millrace needs the modules of Node.js 20.19 or later, as Node.js, Bun and Deno have them, and this runtime has none. ' +
        "In Next.js, use the Node.js runtime (no export const runtime = 'edge', and proxy.js in place of middleware.js). " +
        'At the edge and in browsers, ask a decision service by fetch: see docs/how-to/serverless.md and millrace serve.'
    );
}`

/** The path of a file from another one, as `require` and `import` take it. */
export function relativePath(from, to) {
  const path = posix.relative(posix.dirname(from), to)
  return path.startsWith('.') ? path : `./${path}`
}

/** Converts an ES module. @throws Error for syntax that neither src/ nor the bundler uses */
export function toCommonJS(code, file) {
  const edits = []
  const exported = []
  for (const node of parse(code, { ecmaVersion: 'latest', sourceType: 'module' }).body) {
    const replace = (text) => edits.push({ start: node.start, end: node.end, text })
    if (node.type === 'ImportDeclaration') replace(`${boundNames(node, code)}${loading(node.source)};`)
    else if (node.type === 'ExportNamedDeclaration' && node.source) {
      const each = ({ exported, local }) =>
        `exports.${exported.name} = ${loading(node.source)}.${local.name};`
      replace(node.specifiers.map(each).join('\n'))
    } else if (node.type === 'ExportNamedDeclaration' && !node.declaration) {
      replace('')
      exported.push(...node.specifiers.map((s) => `exports.${s.exported.name} = ${s.local.name};`))
    } else if (node.type.startsWith('Export')) {
      throw new Error(`${file}: cannot convert to CommonJS: ${code.slice(node.start, node.end)}`)
    }
  }
  const head = ["'use strict';", "Object.defineProperty(exports, '__esModule', { value: true });"]
  if (file === CORE) head.push(RUNTIME_CHECK)
  else if (NODE_IMPORT.test(code)) head.push(`require('${relativePath(file, CORE)}');`)
  for (const { index } of code.matchAll(META_URL)) {
    edits.push({ start: index, end: index + 'import.meta.url'.length, text: 'importMetaUrl' })
  }
  if (code.search(META_URL) >= 0) head.push(IMPORT_META_URL)
  return `${[...head, edited(code, edits).trim(), ...exported].join('\n')}\n`
}

/** In a bundle of ES modules, which has no `__filename`, it is the URL of the main file. */
const IMPORT_META_URL =
  "const importMetaUrl = process.getBuiltinModule('node:url').pathToFileURL(" +
  "typeof __filename === 'string' ? __filename : (process.argv[1] ?? '.')).href;"

function loading({ value, raw }) {
  return value.startsWith('node:') ? `process.getBuiltinModule(${raw})` : `require(${raw})`
}

/** `const { a, b: c } = ` for an import of `{ a, b as c }`; an empty string for an import without names. */
function boundNames(node, code) {
  if (node.specifiers.length === 0) return ''
  const [first] = node.specifiers
  if (first.type === 'ImportNamespaceSpecifier') return `const ${first.local.name} = `
  // Only CommonJS packages have a default export here: it is what `require` returns.
  if (first.type === 'ImportDefaultSpecifier') return `const ${first.local.name} = `
  const names = node.specifiers.map((specifier) => {
    if (specifier.type !== 'ImportSpecifier') {
      throw new Error(`cannot convert to CommonJS: ${code.slice(node.start, node.end)}`)
    }
    const { imported, local } = specifier
    return imported.name === local.name ? local.name : `${imported.name}: ${local.name}`
  })
  return `const { ${names.join(', ')} } = `
}

function edited(code, edits) {
  let text = code
  for (const edit of edits.sort((a, b) => b.start - a.start)) {
    text = text.slice(0, edit.start) + edit.text + text.slice(edit.end)
  }
  return text
}

/** The names that a module exports, and what each is called in the module. */
export function exportedNames(code) {
  const { body } = parse(code, { ecmaVersion: 'latest', sourceType: 'module' })
  const names = body.flatMap((node) => {
    if (node.type !== 'ExportNamedDeclaration') return []
    const { declaration } = node
    if (!declaration) return node.specifiers.map(({ exported, local }) => [exported.name, local.name])
    return (declaration.declarations ?? [declaration]).map(({ id }) => [id.name, id.name])
  })
  return new Map(names)
}
