// run: typescript, full
// docs/reference/api has every export of every module, and each page of options a table of them, required ones first.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ENTRIES } from '../entries.js'
import { markdownFiles } from './markdown.js'
import { readText, root } from './root.js'

const ts: typeof import('./oldest-typescript/node_modules/typescript/lib/typescript.js') = createRequire(
  join(root, 'test/package/oldest-typescript/package.json'),
)('typescript')

/** The page of each module, and the declarations of its exports. */
const MODULES: readonly (readonly [page: string, types: string])[] = [
  ['millrace', 'dist/index.d.mts'],
  ...Object.keys(ENTRIES)
    .filter((name) => name !== 'internal')
    .map((name) => [name.replaceAll('/', '.'), `dist/entries/${name}.d.mts`] as const),
]
const API = 'docs/reference/api'

function exportsOf(): Map<string, string[]> {
  const { ESNext: module } = ts.ModuleKind
  const { Bundler: moduleResolution } = ts.ModuleResolutionKind
  const files = MODULES.map(([, types]) => join(root, types))
  const options = { module, moduleResolution, types: ['node'], skipLibCheck: true, noEmit: true }
  const program = ts.createProgram(files, options)
  const checker = program.getTypeChecker()
  return new Map(
    MODULES.map(([page], i) => {
      const symbol = checker.getSymbolAtLocation(program.getSourceFile(files[i]!)!)!
      return [page, checker.getExportsOfModule(symbol).map(({ name }) => name)]
    }),
  )
}

test('every export of every module is on the page of that module', () => {
  const all = exportsOf()
  assert.ok(all.get('redis')!.includes('createRedisLimiter') && all.get('web')!.includes('LimitedRequest'))
  const lacking = [...all].flatMap(([page, names]) => {
    const text = readText(`${API}/${page}.md`).replaceAll('\\_', '_')
    const shown = new Set(Array.from(text.matchAll(/^(?:- \[|### )(\w+)/gm), ([, name]) => name))
    const isAlias = (name: string) => name === 'default' // of the plugin for Fastify: it has its own name, too
    return names.filter((name) => !isAlias(name) && !shown.has(name)).map((name) => `${page}: ${name}`)
  })
  assert.equal(lacking, [])
})

test('the index leads to each module, and to what it exports', () => {
  const index = readText(`${API}/index.md`)
  for (const [page] of MODULES) assert.match(index, `](${page}.md)`)
  for (const link of ['[createLimiter](createLimiter.md)', '[rateLimit](express.rateLimit.md)']) {
    assert.match(index, link)
  }
})

test('a page with several properties has a table of all of them first, required ones before others', () => {
  const pages = markdownFiles(API).map((file) => [file, readText(file)] as const)
  const tables = pages.filter(([, text]) => text.includes('## All at a glance'))
  assert.ok(tables.length > 80, `${tables.length} tables`)
  for (const [file, text] of pages) {
    const [, section = ''] = /^## Properties\n([\s\S]*?)(?=^## |(?![\s\S]))/m.exec(text) ?? []
    const names = Array.from(section.matchAll(/^### (\w+)(\\?\??)$/gm), ([, name, mark]) => ({
      name,
      isRequired: mark === '',
    }))
    if (names.length < 2) continue
    const [, table = ''] = /^## All at a glance\n([\s\S]*?)^## Properties$/m.exec(text) ?? []
    const rows = Array.from(table.matchAll(/^\| \[`(\w+)`\]\(#\w+\) \| .*? \| (required)?/gm), (row) => ({
      name: row[1],
      isRequired: row[2] !== undefined,
    }))
    assert.equal(rows, names, file)
    assert.equal(
      rows,
      [...rows.filter((row) => row.isRequired), ...rows.filter((row) => !row.isRequired)],
      file,
    )
  }
})

test.run()
