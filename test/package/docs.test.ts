// Links and anchors of every Markdown file, the navigation of the site, and the pages that repeat what the
// source says.
import { existsSync, readdirSync } from 'node:fs'
import { join, posix } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { anchorsOf, linksOf, markdownFiles, withoutCode } from './markdown.js'
import { readText, root, sourcesIn, withoutComments } from './root.js'

const OURS = /^https:\/\/github\.com\/millrace\/millrace\/(?:blob|tree)\/main\/(.*)$/
/** The README, as it is shown there. */
const HOME = /^https:\/\/github\.com\/millrace\/millrace#(?!readme$)(.+)$/
/** Written by a program, not wrapped by hand. */
const GENERATED = /^docs\/reference\/api\//
const WIDTH = 100

const files = markdownFiles()
const pages = files.filter((file) => file.startsWith('docs/')).map((file) => file.slice('docs/'.length))

/** What is wrong with a link of a file; undefined where nothing is. */
function wrongLink(file: string, link: string): string | undefined {
  const heading = HOME.exec(link)?.[1]
  if (heading !== undefined && !anchorsOf(readText('README.md')).has(heading))
    return `${file}: ${link}: no such heading in README.md`
  const ours = OURS.exec(link)?.[1]
  if (ours === undefined && /^[a-z]+:/.test(link)) return undefined
  const [path = '', anchor] = (ours ?? link).split('#')
  const target = ours !== undefined ? path : path === '' ? file : posix.join(posix.dirname(file), path)
  if (!existsSync(join(root, target))) return `${file}: ${link}: there is no ${target}`
  if (ours === undefined && file.startsWith('docs/') && !target.startsWith('docs/'))
    return `${file}: ${link}: the site has only what is in docs/; give the address on GitHub`
  if (anchor === undefined || !target.endsWith('.md')) return undefined
  return anchorsOf(readText(target)).has(anchor)
    ? undefined
    : `${file}: ${link}: no such heading in ${target}`
}

test('every link of a Markdown file leads to a file and a heading that exist', () => {
  assert.ok(files.length > 20, `only ${files.length} files were found`)
  const links = files.flatMap((file) => linksOf(readText(file)).map((link) => ({ file, link })))
  assert.ok(links.length > 200, `only ${links.length} links were found`)
  const wrong = links.map(({ file, link }) => wrongLink(file, link)).filter((found) => found !== undefined)
  assert.equal(wrong, [])
})

test('the check itself finds links that lead nowhere', () => {
  for (const link of [
    'nowhere.md',
    'reference/errors.md#err_millrace_none',
    '#nowhere',
    '../README.md',
    'https://github.com/millrace/millrace/blob/main/src/none.ts',
    'https://github.com/millrace/millrace#nowhere',
  ])
    assert.type(wrongLink('docs/index.md', link), 'string', link)
  for (const link of [
    'tutorial.md',
    'reference/errors.md#err_millrace_closed',
    '#how-to',
    'https://example.com/none',
    'https://github.com/millrace/millrace/blob/main/src/index.ts',
  ])
    assert.is(wrongLink('docs/index.md', link), undefined, link)
  assert.equal(linksOf('[a](b.md) `[c](d.md)`\n```\n[e](f.md)\n```\n![g](h.svg) [i](j_(k).md)'), [
    'b.md',
    'h.svg',
    'j_(k).md',
  ])
  assert.equal(
    [...anchorsOf('# A `b`: c\n## A b c\n```\n# no\n```\n## `npm run x`')],
    ['a-b-c', 'a-b-c-1', 'npm-run-x'],
  )
})

test('every page of docs/ is in the navigation of the site, once, and has a title', () => {
  const groups: { pages: string[] }[] = JSON.parse(readText('docs-site/navigation.json'))
  const listed = groups.flatMap((group) => group.pages)
  const folders = listed.filter((page) => page.endsWith('/'))
  for (const folder of folders) assert.ok(existsSync(join(root, 'docs', folder, 'index.md')), folder)
  const reached = pages.filter((page) => !folders.some((folder) => page.startsWith(folder)))
  assert.equal(listed.filter((page) => !page.endsWith('/')).toSorted(), reached.toSorted())
  for (const page of pages) assert.match(withoutFences(readText(`docs/${page}`)), /^# \S/m, page)
})

const withoutFences = (text: string): string => text.replace(/^```[\s\S]*?^```/gm, '')

test('every file and folder of docs/ that a comment names exists', () => {
  const named = ['src', 'test', 'bench', 'cli/src', 'cli/test', 'service/src'].flatMap((folder) =>
    sourcesIn(folder)
      .filter((file) => file !== 'package/docs.test.ts')
      .flatMap((file) =>
        (readText(`${folder}/${file}`).match(/\bdocs\/[\w/-]+\.(?:md|svg)/g) ?? []).map((page) => ({
          file: `${folder}/${file}`,
          page,
        })),
      ),
  )
  assert.ok(named.length > 5)
  for (const { file, page } of named) assert.ok(existsSync(join(root, page)), `${file}: ${page}`)
})

test(`prose is wrapped at ${WIDTH} columns`, () => {
  for (const file of files.filter((name) => !GENERATED.test(name))) {
    const long = withoutCodeLines(readText(file))
      .map((line, i) => ({ line, at: i + 1 }))
      .filter(({ line }) => line.length > WIDTH && !/^\s*\||\]\(|^<!--|^#|https?:/.test(line))
    assert.equal(
      long.map(({ at }) => `${file}:${at}`),
      [],
    )
  }
})

/** Lines, those of fenced blocks empty. */
function withoutCodeLines(text: string): string[] {
  return text.replace(/^( *)(```+)[\s\S]*?^ *\2 *$/gm, (block) => block.replace(/[^\n]/g, '')).split('\n')
}

const environment = readText('docs/reference/environment.md')
const code = sourcesIn('src').map((file) => withoutComments(readText(`src/${file}`)))

/** The headings below a heading of the second level. */
function headingsBelow(title: string): string[] {
  const [, section = ''] =
    new RegExp(`^## ${title}\\n([\\s\\S]*?)(?=^## |(?![\\s\\S]))`, 'm').exec(environment) ?? []
  return [...section.matchAll(/^### (\w+)$/gm)].map(([, heading]) => heading!)
}

test('docs/reference/environment.md has each variable that src/ reads, and no other', () => {
  const read = code.flatMap((text) =>
    [...text.matchAll(/\benv(?:ironment)?\.([A-Z_]+)/g)].map(([, name]) => name!),
  )
  assert.equal([...new Set(read)].toSorted(), headingsBelow('Variables').toSorted())
})

test('docs/reference/environment.md has each warning that src/ emits, and no other', () => {
  const emitted = code.flatMap((text) =>
    [...text.matchAll(/\bcode: '(MILLRACE_[A-Z_]+|ERR_MILLRACE_DAMAGED)'/g)].map(([, name]) => name!),
  )
  assert.ok(emitted.length > 0)
  assert.equal(emitted.toSorted(), headingsBelow('Warnings').toSorted())
  const emits = code.flatMap((text) => [...text.matchAll(/\bemitWarning\(/g)]).length
  assert.is(emits, emitted.length, 'each warning that is emitted names its code')
})

test('the API reference has a section for everything that the package exports', () => {
  const texts = readdirSync(join(root, 'docs/reference/api')).map((file) =>
    readText(`docs/reference/api/${file}`),
  )
  const headings = new Set(
    texts.flatMap((text) => [...text.matchAll(/^#{1,3} (\w+)/gm)].map(([, name]) => name!)),
  )
  const modules = ['index', 'redis/redis', 'memcached/memcached']
  const exported = modules.flatMap((name) => [
    ...withoutComments(readText(`src/${name}.ts`)).matchAll(/^export (?:type )?\{([^}]*)\}/gm),
    ...withoutComments(readText(`src/${name}.ts`)).matchAll(/^export function (\w+)/gm),
  ])
  const names = exported.flatMap(([, list]) =>
    list!
      .split(',')
      .map((item) => item.trim().split(/\s+/).at(-1)!)
      .filter((name) => name !== ''),
  )
  for (const name of ['createLimiter', 'RedisOptions', 'createMemcachedLimiter'])
    assert.ok(names.includes(name), name)
  assert.equal(
    names.filter((name) => !headings.has(name)),
    [],
  )
})

test('code is left out before links are looked for', () => {
  assert.is(withoutCode('a `b` c\n```js\nd\n```\ne').replaceAll('\n', ''), 'a  ce')
})

test.run()
