// run: full
// What an installed package reads when it is loaded, how large it is, and what it finds beside its code.
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ENTRIES } from '../entries.js'
import { isLeftOut } from '../native/sides.js'
import { linkModule, makeProject, runNode } from './project.js'
import { readText } from './root.js'

const project = await makeProject()
test.after(() => rmSync(project.folder, { recursive: true }))

const MOST_BYTES = 3_000_000
/** The most files that `require` reads: modules, and the package.json of each package and folder on the way. */
const MOST_READ: Readonly<Record<string, number>> = {
  millrace: 4,
  'millrace/express': 6,
  'millrace/redis': 8,
}
/** The most for other entries, but for those of their peer dependencies. */
const MOST_READ_ELSE = 9

const peers = Object.keys(JSON.parse(readText('package.json')).peerDependencies)
for (const peer of peers) linkModule(project.folder, peer)

/** The files that are read, by their paths within the package or with the names of their packages. */
async function filesRead(load: string, name: string): Promise<string[]> {
  const script = `
    const { existsSync } = require('node:fs')
    const { dirname, join } = require('node:path')
    const load = async () => { ${load} }
    load().then(() => {
      const modules = Object.keys(require.cache).filter((file) => !file.endsWith('load.cjs'))
      const manifests = modules.flatMap((file) => {
        const found = []
        for (let at = dirname(file); at !== dirname(at) && !/node_modules$/.test(at); at = dirname(at))
          if (existsSync(join(at, 'package.json'))) found.push(join(at, 'package.json'))
        return found
      })
      console.log(JSON.stringify([...new Set([...modules, ...manifests])]))
    })`
  writeFileSync(join(project.folder, 'load.cjs'), script)
  const { code, out, err } = await runNode(['load.cjs', name], project.folder)
  assert.equal({ code, err }, { code: 0, err: '' }, name)
  const files: string[] = JSON.parse(out)
  return files.map((file) => file.replaceAll('\\', '/')).filter((file) => !isOfPeer(file))
}

const isOfPeer = (file: string): boolean =>
  /\/node_modules\//.test(file) &&
  !/\/node_modules\/(?:millrace|lru-cache|ipaddr\.js|piscina|node-gyp-build)\//.test(file)

const bySubpath = ['millrace', ...Object.keys(ENTRIES).map((name) => `millrace/${name}`)]

for (const name of bySubpath) {
  test(`require and import of ${name} read few files`, async () => {
    const most = MOST_READ[name] ?? MOST_READ_ELSE
    const required = await filesRead(`require('${name}')`, name)
    assert.ok(required.length > 2 && required.length <= most, `${required.length}: ${required.join(' ')}`)
    // `import` reads a module more, that of the entry, which is not in the cache of `require`.
    assert.equal((await filesRead(`await import('${name}')`, name)).sort(), required.sort())
  })
}

const OTHERS =
  /^(?:http|fetch|compat|redis|memcached|backend|client|values|remote|config\/(?:stores|\w+\.js$))/
/** The contract of stores and policies: a limiter checks options by it. */
const OF_POLICIES = /^config\/(?:config-store|document-store|policy|policy-checks|policy-keys)\.js$/

test('require of millrace reads no code of HTTP, Redis, Memcached, other stores, pools or calls', async () => {
  const chunks: Record<string, string[]> = JSON.parse(readText('build/chunks.json'))
  const files = (await filesRead("require('millrace')", 'millrace')).filter((file) => file.endsWith('.js'))
  const modules = files.flatMap((file) => chunks[file.replace(/^.*\/millrace\/dist\//, '')]!)
  assert.ok(modules.includes('create/create.js'), modules.join(' '))
  assert.equal(
    modules.filter((module) => OTHERS.test(module) && !OF_POLICIES.test(module)),
    [],
  )
  for (const lazy of ['limiters/pool-limiter.js', 'engines/pool/pool.js', 'engines/pool/threads.js']) {
    assert.not(modules.includes(lazy), lazy)
  }
})

test('the unpacked package has at most 3 MB, with the builds for one platform', () => {
  const { dependencies } = JSON.parse(readFileSync(join(project.installed, 'package.json'), 'utf8'))
  assert.equal(Object.keys(dependencies), ['ipaddr.js', 'lru-cache', 'node-gyp-build', 'piscina'])
  assert.ok(sizeOf(project.installed) <= MOST_BYTES, `${sizeOf(project.installed)} bytes`)
})

function sizeOf(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  return entries.reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}

const USES = `
  const { createLimiter } = require('millrace')
  const pool = createLimiter({ limit: 3, window: '1m', engine: 'pool', pool: { maxThreads: 1 } })
  const inline = createLimiter({ limit: 3, window: '1m' })
  pool.check('key').then(async ({ remaining }) => {
    await pool.close()
    console.log(remaining, inline.stats().native)
  })`

for (const native of ['0', '1']) {
  const run = native === '1' && isLeftOut() ? test.skip : test
  run(`an installed package finds its worker${native === '1' ? ' and its addon' : ''}`, async () => {
    writeFileSync(join(project.folder, 'uses.cjs'), USES)
    const env = { ...process.env, MILLRACE_NATIVE: native }
    const outcome = await runNode(['uses.cjs'], project.folder, env)
    assert.equal(outcome, { code: 0, out: `2 ${native === '1' ? 'addon' : 'none'}\n`, err: '' })
  })
}

test('a stack trace has the names of functions, and lines of readable code', async () => {
  const script = `
    const { createLimiter } = require('millrace')
    const clock = { now() { if (this.fails) throw new Error('broken clock'); return 0 } }
    const limiter = createLimiter({ limit: 3, window: '1m', clock })
    clock.fails = true
    try { limiter.check('key') } catch ({ stack }) { console.log(stack) }`
  writeFileSync(join(project.folder, 'stack.cjs'), script)
  const { out } = await runNode(['stack.cjs'], project.folder)
  const frames = [
    ...out.matchAll(/at (?:new )?([\w.$]+) (?:\[as \w+\] )?\(.*?dist\/(chunks\/[\w-]+\.js):(\d+):(\d+)\)/g),
  ]
  assert.ok(frames.length >= 2, out)
  for (const [, name, file, line] of frames) {
    const code = readFileSync(join(project.installed, 'dist', file!), 'utf8').split('\n')[Number(line) - 1]!
    assert.ok(code.length < 200, code)
    assert.ok(name!.length > 3, name)
  }
  assert.match(out, /InlineLimiter\.|OneRuleLimiter\./)
})

test.run()
