import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLimiter } from 'millrace'
import { test as always } from 'uvu'
import * as assert from 'uvu/assert'
import { accepted, addonFor } from '#millrace/native/addon.js'
import { constantsHash } from '#millrace/native/constants.js'
import { assertRaises } from '../limiter/support.js'
import { copyPackage } from '../mutants/package-copy.js'
import { runNode } from '../package/project.js'
import { root } from '../package/root.js'
import { isLeftOut, onSide } from './sides.js'

const test = isLeftOut() ? always.skip : always
const small = () => createLimiter({ limit: 5, window: '1m', maxKeys: 20 })

test('stats().native says whether the addon decides batches', () => {
  assert.is(onSide('addon', small).stats().native, 'addon')
  assert.is(onSide('typescript', small).stats().native, 'none')
})

test('a limiter stays on its side when its window changes, whatever MILLRACE_NATIVE is by then', () => {
  const rules = [
    { name: 'burst', limit: 2, window: '1s' },
    { name: 'hourly', limit: 6, window: '1h' },
  ] as const
  const several = () => createLimiter({ rules, maxKeys: 20 })
  const before = process.env.MILLRACE_NATIVE
  try {
    for (const make of [small, several]) {
      const [byAddon, byTypeScript] = [onSide('addon', make), onSide('typescript', make)]
      for (const [i, wish] of ['0', '1', 'no side'].entries()) {
        process.env.MILLRACE_NATIVE = wish
        for (const limiter of [byAddon, byTypeScript]) {
          limiter.update(limiter.rules[0]!.name, { window: 60_000 * (2 + i), limit: 2 + i })
          assert.ok(limiter.check('key').allowed)
          assert.is(limiter.checkMany(['key', 'other'], 0).allowed[1], 1)
        }
        assert.equal([byAddon.stats().native, byTypeScript.stats().native], ['addon', 'none'], wish)
      }
    }
  } finally {
    if (before === undefined) delete process.env.MILLRACE_NATIVE
    else process.env.MILLRACE_NATIVE = before
  }
})

test('the addon decides windows of up to 2^20 granules by each range sum', () => {
  for (const rangeSum of [undefined, 'blocks', 'fenwick'] as const) {
    for (const granules of [1, 256, 257, 2 ** 20]) {
      if (rangeSum !== undefined && granules <= 256) continue // too few granules for this range sum
      const rule = { limit: 5, window: `${granules}ms`, granularity: 1, ...(rangeSum && { rangeSum }) }
      const limiter = onSide('addon', () => createLimiter({ ...rule, maxKeys: 1 }))
      assert.is(limiter.stats().native, 'addon')
      const decided = limiter.checkMany(['key', 'key', 'key'], 2)
      assert.equal([...decided.allowed], [1, 1, 0], `${granules} granules, ${rangeSum}`)
    }
  }
})

test('an addon compiled with other constants is refused with a warning that names both hashes', async () => {
  const addon = addonFor({ MILLRACE_NATIVE: '1' })!
  assert.is(accepted(addon).addon, addon)
  for (const hash of ['0123456789abcdef', undefined]) {
    const warned = once(process, 'warning')
    assert.is(accepted({ ...addon, constantsHash: hash as string }).addon, undefined)
    const [warning] = await warned
    assert.is(warning.code, 'MILLRACE_NATIVE_MISMATCH')
    assert.ok(warning.message.includes(`${hash} there and ${constantsHash()} here`), warning.message)
  }
})

always('MILLRACE_NATIVE other than 0, 1 or nothing is refused', () => {
  for (const wish of ['yes', '2', ' ']) {
    assertRaises(() => addonFor({ MILLRACE_NATIVE: wish }), 'ERR_MILLRACE_INVALID_OPTION', 'MILLRACE_NATIVE')
  }
  assert.is(addonFor({ MILLRACE_NATIVE: '0' }), undefined)
  assert.is(addonFor({ MILLRACE_NATIVE: '' }), addonFor({}))
})

const PROGRAM = `
  import { createLimiter } from '#millrace/index.js'
  try {
    const limiter = createLimiter({ limit: 5, window: '1m', maxKeys: 20 })
    const { allowed } = limiter.checkMany(new Array(100).fill('key'))
    console.log(limiter.stats().native, allowed.reduce((sum, one) => sum + one))
  } catch (error) {
    console.log(error.code, error.option, error.message)
  }`

const PERMISSION = process.allowedNodeEnvironmentFlags.has('--permission')
  ? '--permission'
  : '--experimental-permission'

for (const flags of [['--no-addons'], [PERMISSION, '--allow-fs-read=*']]) {
  test(`${flags[0]} is named where it keeps the addon away`, () => {
    const script = `
      import { createLimiter } from 'millrace'
      try {
        createLimiter({ limit: 1, window: '1m'MORE })
      } catch (error) { console.log(error.code, error.option, error.message) }`
    for (const [native, more, option] of [
      ['', ", shared: { file: './none.arena' }", 'shared.file'],
      ['1', '', 'MILLRACE_NATIVE'],
    ] as const) {
      const args = [...flags, '--input-type=module', '-e', script.replace('MORE', more)]
      const env = { ...process.env, MILLRACE_NATIVE: native }
      const { stdout } = spawnSync(process.execPath, args, { cwd: root, env, encoding: 'utf8' })
      assert.match(stdout, new RegExp(`^ERR_MILLRACE_NO_ADDON ${option} .*--no-addons.*--allow-addons`))
      assert.not.match(stdout, /npm run build/)
    }
  })
}

always('without a build for this machine TypeScript decides, or MILLRACE_NATIVE=1 throws', async () => {
  const folder = await copyPackage()
  try {
    const program = join(folder, 'program.mjs')
    await writeFile(program, PROGRAM)
    const { MILLRACE_NATIVE: before } = process.env
    delete process.env.MILLRACE_NATIVE
    try {
      assert.equal(await runNode([program], folder), { code: 0, out: 'none 5\n', err: '' })
      process.env.MILLRACE_NATIVE = '1'
      const { out } = await runNode([program], folder)
      assert.match(out, /^ERR_MILLRACE_NO_ADDON MILLRACE_NATIVE .*npm run build:native/)
    } finally {
      if (before === undefined) delete process.env.MILLRACE_NATIVE
      else process.env.MILLRACE_NATIVE = before
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

always.run()
