// run: full
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, posix } from 'node:path'
import { publint } from 'publint'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ENTRIES } from '../entries.js'
import { makeProject, runNode } from './project.js'
import { root } from './root.js'

const project = await makeProject()
test.after(() => rmSync(project.folder, { recursive: true }))

const files = readdirSync(project.installed, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(project.installed.length + 1))
  .map((file) => file.replaceAll('\\', '/'))

/** The addon's prebuilds; empty if it is not built. */
function builds(): string[] {
  if (!existsSync(join(root, 'prebuilds'))) return []
  return readdirSync(join(root, 'prebuilds'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.node'))
    .map((file) => `prebuilds/${file.replaceAll('\\', '/')}`)
}

test('the tarball has exactly the files that users need', () => {
  const papers = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']
  const isBundled =
    /^dist\/(?:chunks\/[\w-]+\.js|engines\/pool\/worker\.js|types\/.+\.d\.ts)$|\.packages\.mjs$/
  const code = files.filter((file) => isBundled.test(file))
  const entries = ['index', ...Object.keys(ENTRIES).map((name) => `entries/${name}`)].flatMap((name) =>
    ['js', 'd.ts', 'mjs', 'd.mts', 'bundler.mjs', 'bun.mjs'].map((ending) => `dist/${name}.${ending}`),
  )
  const documents = ['docs', 'examples'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length).replaceAll('\\', '/')),
  )
  papers.push(
    ...documents.filter(
      (file) =>
        !/^(?:examples\/access\.log|docs\/(?:explanation|measurements|reference\/api)\/.*)$/.test(file),
    ),
  )
  assert.ok(code.length > 50)
  assert.equal(
    files.toSorted(),
    [...papers, ...code, ...entries, 'dist/package.json', ...builds()].toSorted(),
  )
})

test('every link of a document leads to a file of the package, or to the web', () => {
  const documents = files.filter((file) => file.endsWith('.md'))
  assert.ok(documents.length > 5)
  for (const file of documents) {
    const text = readFileSync(join(project.installed, file), 'utf8')
    for (const [, link = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      const target = posix.join(posix.dirname(file), link.replace(/#.*/, ''))
      const isThere = /^docs\/(?:explanation|measurements|reference\/api)\//.test(target)
        ? existsSync(join(root, target))
        : files.includes(target)
      if (!/^(https:|#)/.test(link)) assert.ok(isThere, `${file}: ${link}`)
      const ours = /^https:\/\/github\.com\/millrace\/millrace\/(?:blob|tree)\/main\/([^#]+)/.exec(link)?.[1]
      if (ours !== undefined) assert.ok(existsSync(join(root, ours)), `${file}: ${link}`)
    }
  }
})

test('no file refers to a missing source map', () => {
  for (const file of files) {
    const text = readFileSync(join(project.installed, file), 'utf8')
    const [, map] = /^\/\/# sourceMappingURL=(\S+)/m.exec(text) ?? []
    if (map !== undefined) assert.ok(files.includes(posix.join(posix.dirname(file), map)), `${file}: ${map}`)
  }
})

test('publint has no errors, warnings or suggestions', async () => {
  const bytes = readFileSync(project.tarball)
  const tarball = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength)
  const { messages, pkg } = await publint({
    pack: { tarball },
    strict: true,
    level: 'suggestion',
  })
  assert.is(pkg.name, 'millrace')
  // `imports` are for our tests, which know what a file of CommonJS exports.
  assert.equal(
    messages.filter(({ path: [field] }) => field !== 'imports'),
    [],
  )
})

test('the types are right under every module resolution', async () => {
  const manifest = createRequire(import.meta.url).resolve('@arethetypeswrong/cli/package.json')
  const attw = join(dirname(manifest), JSON.parse(readFileSync(manifest, 'utf8')).bin.attw)
  const entrypoints = ['.', ...Object.keys(ENTRIES), 'package.json']
  const { out } = await runNode(
    [attw, project.tarball, '--format', 'json', '--entrypoints', ...entrypoints],
    project.folder,
  )
  const { analysis } = JSON.parse(out)
  assert.equal(
    Object.keys(analysis.entrypoints),
    entrypoints.map((name) => (name === '.' ? name : `./${name}`)),
  )
  assert.equal(analysis.problems, [])
})

test.run()
