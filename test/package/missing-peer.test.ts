// run: full
// A project that has installed the package and nothing else: each of its subpaths loads, or names what is missing.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ENTRIES } from '../entries.js'
import { makeProject, runNode } from './project.js'
import { readText } from './root.js'

const project = await makeProject()
test.after(() => rmSync(project.folder, { recursive: true }))

const { peerDependencies } = JSON.parse(readText('package.json'))
const SUBPATHS = ['.', ...Object.keys(ENTRIES).map((name) => `./${name}`)]
/** The subpaths that load a peer. All others are handed what they work with. */
const NEEDS: Readonly<Record<string, string>> = {
  './nest': '@nestjs/common',
  './compat/rate-limiter-flexible': 'rate-limiter-flexible',
  './config/lmdb': 'lmdb',
  './config/dynamodb': '@aws-sdk/client-dynamodb',
  './config/mongodb': 'mongodb',
}
const LOADS = {
  'import()': 'import(name)',
  require: 'Promise.resolve().then(() => require(name))',
  'a static import': "import('./static-' + name.replaceAll('/', '-') + '.mjs')",
}

/** Loads all subpaths one after another, and tells what came of each. */
async function outcomes(load: string): Promise<Record<string, unknown>> {
  const script = `
    import { createRequire } from 'node:module'
    import { MillraceError } from 'millrace'
    const require = createRequire(import.meta.url)
    const outcomes = {}
    for (const subpath of ${JSON.stringify(SUBPATHS)}) {
      const name = 'millrace' + subpath.slice(1)
      outcomes[subpath] = await ${load}.then(() => 'loaded', (error) => {
        const { code, option, message, cause } = error
        return { isOurs: error instanceof MillraceError, code, option, message, hasCause: cause instanceof Error }
      })
    }
    setTimeout(() => console.log(JSON.stringify(outcomes)), 50) // a process that must end has done so by then`
  writeFileSync(join(project.folder, 'load.mjs'), script)
  const { code, out, err } = await runNode(['load.mjs'], project.folder)
  assert.equal({ code, err }, { code: 0, err: '' })
  return JSON.parse(out)
}

const missing = (option: string) => ({
  isOurs: true,
  code: 'ERR_MILLRACE_MISSING_PEER',
  option,
  message: `${option}: expected an installed package (npm install ${option}), got undefined`,
  hasCause: true,
})

for (const subpath of SUBPATHS) {
  const name = `millrace${subpath.slice(1)}`
  writeFileSync(
    join(project.folder, `static-${name.replaceAll('/', '-')}.mjs`),
    `import * as all from '${name}'\nexport { all }\n`,
  )
}

for (const [how, load] of Object.entries(LOADS)) {
  test(`${how} of each subpath without its peer is an error that can be caught, and names the command`, async () => {
    const expected = SUBPATHS.map((subpath) => {
      const peer = NEEDS[subpath]
      return [subpath, peer === undefined ? 'loaded' : missing(peer)]
    })
    assert.equal(await outcomes(load), Object.fromEntries(expected))
  })
}

test('every peer that is loaded is a peer dependency, and YAML names its package, too', async () => {
  for (const peer of Object.values(NEEDS)) assert.ok(peer in peerDependencies, peer)
  const script = `
    import { fileConfig } from 'millrace/config/file'
    import { writeFileSync } from 'node:fs'
    writeFileSync('a.yaml', '')
    try { fileConfig({ path: 'a.yaml' }) } catch (error) { console.log(error.code, error.option, error.message) }`
  const { out, err } = await runNode(['--input-type=module', '-e', script], project.folder)
  assert.is(err, '')
  assert.match(out, /^ERR_MILLRACE_MISSING_PEER yaml .*npm install yaml/)
})

test('metrics name the package that a call needs, and need none for a registry that is given', async () => {
  const script = `
    import { createLimiter } from 'millrace'
    import { observe, register } from 'millrace/metrics'
    const api = createLimiter({ limit: 1, window: '1m' })
    for (const call of [() => register({ api }), () => observe({ api })])
      try { call() } catch ({ code, option }) { console.log(code, option) }
    const metrics = []
    register({ api }, { registerMetric: (metric) => metrics.push(metric) })
    console.log((await metrics[0].get()).name)`
  const { out, err } = await runNode(['--input-type=module', '-e', script], project.folder)
  assert.is(err, '')
  const code = 'ERR_MILLRACE_MISSING_PEER'
  assert.equal(out.trim().split('\n'), [
    `${code} prom-client`,
    `${code} @opentelemetry/api`,
    'millrace_decisions_total',
  ])
})

test('what a peer needs itself is named, and an error of a peer stays what it is', async () => {
  const folder = join(project.folder, 'node_modules/lmdb')
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'lmdb', main: 'index.js' }))
  const outcomeOf = async (source: string) => {
    writeFileSync(join(folder, 'index.js'), source)
    const script = `
      await import('millrace/config/lmdb')
        .catch(({ code, option, message }) => console.log(code, option, message))`
    return (await runNode(['--input-type=module', '-e', script], project.folder)).out
  }
  assert.match(
    await outcomeOf("require('@scope/msgpackr/pack')"),
    /^ERR_MILLRACE_MISSING_PEER @scope\/msgpackr .*npm install @scope\/msgpackr\)/,
  )
  assert.match(
    await outcomeOf("require('./lost.js')"),
    /^MODULE_NOT_FOUND undefined Cannot find module '.\/lost.js'/,
  )
  assert.match(await outcomeOf("throw new Error('no binary')"), /^undefined undefined no binary/)
})

test.run()
