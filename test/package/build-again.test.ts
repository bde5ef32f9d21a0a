// A clone without prebuilds is built more than once: the package in build/ links to folders that may be missing.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const SCRIPTS = new URL('../../../scripts/', import.meta.url)

test('the package in build/ is made again beside links that lead nowhere, or elsewhere', () => {
  const root = mkdtempSync(join(tmpdir(), 'millrace-build-'))
  try {
    cpSync(SCRIPTS, join(root, 'scripts'), {
      recursive: true,
      filter: (path) => !path.endsWith('node_modules'),
    })
    mkdirSync(join(root, 'build/lib/engines/pool'), { recursive: true })
    symlinkSync(tmpdir(), join(root, 'build/dist'), 'junction')
    for (let i = 0; i < 2; i++) {
      writeFileSync(join(root, 'build/lib/engines/pool/worker.js'), '')
      const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts/dev-package.mjs')], {
        encoding: 'utf8',
      })
      assert.is(status, 0, stderr)
      for (const name of ['dist', 'prebuilds'])
        assert.is(readlinkSync(join(root, 'build', name)), join(root, name))
    }
  } finally {
    rmSync(root, { recursive: true })
  }
})

test.run()
