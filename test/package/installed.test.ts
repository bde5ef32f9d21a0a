// run: full
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isLeftOut } from '../native/sides.js'
import { linkModule, makeProject, pack, runNode, unpack } from './project.js'
import { readText, root } from './root.js'

const project = await makeProject()
test.after(() => rmSync(project.folder, { recursive: true }))

test('the installed package is imported by an ES module, and limits', async () => {
  copyFileSync(join(root, 'build/test/package/consumer.js'), join(project.folder, 'consumer.mjs'))
  assert.equal(await runNode(['consumer.mjs'], project.folder), { code: 0, out: '', err: '' })
})

// Every Node that the package supports can, unless it was started with --no-experimental-require-module.
if (process.features.require_module) {
  test('the installed package is required by CommonJS without a warning, limits, and is the same as imported', async () => {
    const script = `
      const required = require('millrace')
      const limiter = required.createLimiter({ limit: 2, window: '1m', clock: required.manualClock(1_000) })
      const attached = required.attachLimiter(limiter.share())
      console.log([limiter, attached, limiter].map((each) => each.check('somebody').allowed).join())
      import('millrace').then((imported) => console.log(imported.createLimiter === required.createLimiter))`
    writeFileSync(join(project.folder, 'consumer.cjs'), script)
    const { code, out, err } = await runNode(['consumer.cjs'], project.folder)
    assert.equal({ code, out, err }, { code: 0, out: 'true,true,false\ntrue\n', err: '' })
  })
}

test('the installed command runs, and knows its version', async () => {
  const { bin, version, dependencies } = JSON.parse(readText('cli/package.json'))
  await unpack(
    await pack(join(root, 'cli'), project.folder),
    join(project.folder, 'node_modules/millrace-cli'),
  )
  for (const name of Object.keys(dependencies)) if (name !== 'millrace') linkModule(project.folder, name)
  const main = join(project.folder, 'node_modules/millrace-cli', bin.millrace)
  assert.equal(await runNode([main, '--version'], project.folder), { code: 0, out: `${version}\n`, err: '' })
  const log = join(root, 'examples/access.log')
  const { code, out } = await runNode(
    [main, 'replay', log, '--limit', '10', '--window', '1m'],
    project.folder,
  )
  assert.is(code, 0)
  assert.match(out, 'wrongly admitted  0')
  // The service is a package of its own.
  const why =
    'the package millrace-service is missing. Install it beside millrace-cli: npm install millrace-service'
  assert.equal(await runNode([main, 'serve', '--limit', '1/1s'], project.folder), {
    code: 5,
    out: '',
    err: `millrace: serve: ${why}\n`,
  })
  // The clients of stores are optional.
  for (const [store, name] of [
    ['lmdb:./limits', 'lmdb'],
    ['redis://127.0.0.1:1/0', 'ioredis'],
    ['dynamodb://eu-central-1/limits', '@aws-sdk/client-dynamodb'],
    ['mongodb://127.0.0.1:1/limits', 'mongodb'],
  ]) {
    const set = await runNode([main, 'config', 'set', 'a', '-r', '1/1s', '-s', store!], project.folder)
    const why = `the package ${name} is missing. Install it beside millrace-cli: npm install ${name}`
    assert.equal(set, { code: 2, out: '', err: `millrace: ${store}: ${why}\n` })
  }
})

test('what the package does not export is out of reach, by import and by require', async () => {
  const files = ['dist/index.js', 'dist/entries/express.js', 'dist/chunks/core.js']
  // A file beside those of entries, entries by other spellings, and a way out of their folder.
  const others = ['config/deadline', 'http/express', 'express.js', 'express.d', 'entries/express']
  const script = `
    import { createRequire } from 'node:module'
    const require = createRequire(import.meta.url)
    const codes = []
    for (const path of ${JSON.stringify([...files, ...others])}) {
      await import('millrace/' + path).catch(({ code }) => codes.push(code))
      try { require('millrace/' + path) } catch ({ code }) { codes.push(code) }
    }
    console.log(JSON.stringify(codes))`
  const { out } = await runNode(['--input-type=module', '-e', script], project.folder)
  assert.equal(JSON.parse(out), [
    ...files.flatMap(() => ['ERR_PACKAGE_PATH_NOT_EXPORTED', 'ERR_PACKAGE_PATH_NOT_EXPORTED']),
    ...others.flatMap(() => ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND']),
  ])
})

test('to install it runs no script and compiles nothing', () => {
  const { scripts, gypfile } = JSON.parse(readFileSync(join(project.installed, 'package.json'), 'utf8'))
  for (const script of ['preinstall', 'install', 'postinstall', 'prepare'])
    assert.is(scripts[script], undefined, script)
  // npm compiles packages with a binding.gyp unless `gypfile` is false.
  assert.is(gypfile, false)
  assert.not(existsSync(join(project.installed, 'binding.gyp')))
})

const BATCH = `
  import { createLimiter } from 'millrace'
  const limiter = createLimiter({ limit: 5, window: '1m', maxKeys: 20 })
  const { allowed } = limiter.checkMany(new Array(100).fill('key'))
  console.log(limiter.stats().native, allowed.reduce((sum, one) => sum + one))`

/** Runs it where no program is found: no compiler, no Python, no node-gyp. */
async function decideAlone(): Promise<string> {
  const { code, out, err } = await runNode(['--input-type=module', '-e', BATCH], project.folder, { PATH: '' })
  assert.equal([code, err], [0, ''])
  return out
}

const withBuild = isLeftOut() ? test.skip : test
withBuild('its build for this machine decides batches, where there is no compiler', async () => {
  assert.is(await decideAlone(), 'addon 5\n')
})

test('without its builds it decides in TypeScript', async () => {
  const [builds, away] = ['prebuilds', 'elsewhere'].map((name) => join(project.installed, name))
  const areThere = existsSync(builds!)
  if (areThere) renameSync(builds!, away!)
  try {
    assert.is(await decideAlone(), 'none 5\n')
  } finally {
    if (areThere) renameSync(away!, builds!)
  }
})

test.run()
