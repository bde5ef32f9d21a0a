import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { makeProject, runNode } from './project.js'
import { root } from './root.js'

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
  const { bin, version } = JSON.parse(readFileSync(join(project.installed, 'package.json'), 'utf8'))
  const main = join(project.installed, bin.millrace)
  assert.equal(await runNode([main, '--version'], project.folder), { code: 0, out: `${version}\n`, err: '' })
})

test('what the package does not export is out of reach', async () => {
  const script = "await import('millrace/dist/limiter.js').catch((error) => console.log(error.code))"
  const { out } = await runNode(['--input-type=module', '-e', script], project.folder)
  assert.is(out, 'ERR_PACKAGE_PATH_NOT_EXPORTED\n')
})

test.run()
