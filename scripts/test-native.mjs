// Compiles and runs the tests of the C++ protocol, which do not need Node.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const TESTS = ['cell_test', 'restless_test']
const FLAGS = ['-std=c++20', '-O2', '-Wall', '-Wextra', '-Werror', '-ffp-contract=off', '-pthread']

const folder = mkdtempSync(join(tmpdir(), 'millrace-native-'))
try {
  for (const test of TESTS) {
    const source = fileURLToPath(new URL(`../native/test/${test}.cc`, import.meta.url))
    const program = join(folder, test)
    const compiled = run(process.env.CXX ?? 'c++', [...FLAGS, '-o', program, source])
    if (compiled !== 0 || run(program, []) !== 0) process.exitCode = 1
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit' })
  if (error) console.error(error.message)
  return status ?? 1
}
