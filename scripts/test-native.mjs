// Compiles and runs the test of the C++ protocol, which does not need Node.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const SOURCE = fileURLToPath(new URL('../native/test/cell_test.cc', import.meta.url))
const FLAGS = ['-std=c++20', '-O2', '-Wall', '-Wextra', '-Werror', '-ffp-contract=off', '-pthread']

const folder = mkdtempSync(join(tmpdir(), 'millrace-native-'))
try {
  const program = join(folder, 'cell_test')
  const compiled = run(process.env.CXX ?? 'c++', [...FLAGS, '-o', program, SOURCE])
  process.exitCode = compiled === 0 ? run(program, []) : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit' })
  if (error) console.error(error.message)
  return status ?? 1
}
