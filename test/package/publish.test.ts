// run: typescript, long
// What a release is: `npm publish --dry-run` finds nothing to mend, and npm installs the tarballs into an empty folder
// where there is no compiler.
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { pack, run } from './project.js'
import { readText, root } from './root.js'

const PACKAGES = ['.', 'service', 'cli']
/** What npm warns about in any dry run by somebody who is not logged in. */
const EXPECTED = /^npm warn publish This command requires you to be logged in to \S+ \(dry-run\)$/

const folder = mkdtempSync(join(tmpdir(), 'millrace-publish-'))
test.after(() => rmSync(folder, { recursive: true }))

for (const name of PACKAGES) {
  test(`npm publish --dry-run of ${name} finds nothing to mend, and the package has a README and the license`, async () => {
    const { code, out, err } = await run('npm', ['publish', '--dry-run', '--offline'], join(root, name))
    assert.is(code, 0, err)
    const warnings = err
      .split('\n')
      .filter((line) => /^npm (?:warn|error)/.test(line) && !EXPECTED.test(line))
    assert.equal(warnings, [])
    const { name: published, version } = JSON.parse(readText(`${name}/package.json`))
    assert.is(out.trim(), `+ ${published}@${version}`)
    for (const file of ['README.md', 'LICENSE', 'package.json']) assert.match(err, ` ${file}\n`)
    assert.is(readText(`${name}/LICENSE`), readText('LICENSE'))
  })
}

/** Folders of PATH with no program but these. */
function pathWith(...programs: string[]): string {
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  for (const program of programs) {
    const found = process.env.PATH!.split(delimiter).find((each) => readdirSync(each).includes(program))
    assert.ok(found, program)
    symlinkSync(join(found, program), join(bin, program))
  }
  return bin
}

test('installed from the tarballs where there is no compiler, and without a build, npx millrace runs', async () => {
  const app = join(folder, 'app')
  mkdirSync(app)
  const tarballs: string[] = []
  for (const name of ['.', 'cli']) tarballs.push(await pack(join(root, name), folder))
  const env = { ...process.env, PATH: pathWith('node', 'npm', 'npx', 'sh') }
  const installed = await run('npm', ['install', '--no-audit', '--no-fund', ...tarballs], app, env)
  assert.is(installed.code, 0, installed.err)
  assert.is(installed.err, '')
  assert.not.match(installed.out, /gyp|script/)
  rmSync(join(app, 'node_modules/millrace/prebuilds'), { recursive: true, force: true })

  const use = `import { createLimiter } from 'millrace'
  const limiter = createLimiter({ limit: 1, window: '1m' })
  console.log(limiter.check('a').allowed, limiter.check('a').allowed, limiter.stats().native)`
  writeFileSync(join(app, 'use.mjs'), use)
  assert.equal(await run('node', ['use.mjs'], app, env), { code: 0, out: 'true false none\n', err: '' })

  const demo = await run('npx', ['--offline', 'millrace', 'demo'], app, env)
  assert.is(demo.code, 0, demo.err)
  assert.match(demo.out, /^Held: the most requests of one client/m)
  assert.is(demo.err, '')
  const log = join(root, 'examples/access.log')
  const replayed = await run('npx', ['--offline', 'millrace', 'replay', log, '--limit', '10'], app, env)
  assert.is(replayed.code, 0, replayed.err)
  const { version } = JSON.parse(readFileSync(join(app, 'node_modules/millrace-cli/package.json'), 'utf8'))
  assert.is((await run('npx', ['--offline', 'millrace', '--version'], app, env)).out, `${version}\n`)
})

test('the README says which package has the command', () => {
  assert.match(readText('README.md'), 'millrace-cli')
})

test.run()
