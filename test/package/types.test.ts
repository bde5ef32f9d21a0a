// run: full
// The types as they are found in a project of somebody else, whose strictness is not ours to choose.
import { copyFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { linkModule, makeProject, type Outcome, runNode } from './project.js'
import { root } from './root.js'

const project = await makeProject()
test.after(() => rmSync(project.folder, { recursive: true }))
linkModule(project.folder, '@types/node')

const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')
const FROM_COMMONJS = `
import type { Decision } from 'millrace' with { 'resolution-mode': 'import' }
export async function decide(key: string): Promise<Decision> {
  const { createLimiter } = await import('millrace')
  return createLimiter({ limit: 1, window: '1m' }).check(key)
}
`
const REQUIRING = `
import { createLimiter, type Decision } from 'millrace'
export const decision: Decision = createLimiter({ limit: 1, window: '1m' }).check('somebody')
`

/** Checks one file as strictly as can be, the package's own declarations with it. */
function check(file: string, module: string, moduleResolution: string): Promise<Outcome> {
  const compilerOptions = {
    target: 'es2022',
    module,
    moduleResolution,
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    types: ['node'],
  }
  writeFileSync(join(project.folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [file] }))
  return runNode([tsc, '-p', '.'], project.folder)
}

const clean: Outcome = { code: 0, out: '', err: '' }

test('the types hold for an ES module, as node16, nodenext and a bundler find them', async () => {
  for (const file of ['consumer.mts', 'consumer.ts'])
    copyFileSync(join(root, 'test/package/consumer.ts'), join(project.folder, file))
  assert.equal(await check('consumer.mts', 'node16', 'node16'), clean)
  assert.equal(await check('consumer.mts', 'nodenext', 'nodenext'), clean)
  assert.equal(await check('consumer.ts', 'esnext', 'bundler'), clean)
})

test('the types hold for CommonJS that loads the package by import()', async () => {
  writeFileSync(join(project.folder, 'loading.cts'), FROM_COMMONJS)
  for (const module of ['node16', 'nodenext']) {
    assert.equal(await check('loading.cts', module, module), clean, module)
  }
})

test('the types hold for CommonJS that requires it', async () => {
  writeFileSync(join(project.folder, 'requiring.cts'), REQUIRING)
  for (const module of ['node16', 'nodenext'])
    assert.equal(await check('requiring.cts', module, module), clean, module)
})

test('a mistake would be noticed', async () => {
  writeFileSync(join(project.folder, 'wrong.mts'), "import { nothing } from 'millrace'\nnothing()\n")
  assert.match((await check('wrong.mts', 'node16', 'node16')).out, 'TS2305')
})

test.run()
