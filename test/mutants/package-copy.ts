// Runs a whole test file against a copy of the package with a deliberate mistake.
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { applyEdits, type Edit } from '../explore/copy.js'
import { runGroup } from '../run/process.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/**
 * Returns whether a test file (below `build/test`, without its ending) fails on a copy of the package with
 * these edits.
 */
export async function isCaughtBy(test: string, edits: readonly Edit[]): Promise<boolean> {
  const folder = await copyPackage()
  try {
    await symlink(join(ROOT, 'prebuilds'), join(folder, 'build/prebuilds')) // for test files that need the addon
    await applyEdits(join(folder, 'build/lib'), edits)
    const code = await exitCode(join(folder, 'build/test', `${test}.test.js`))
    if (code !== 0 && code !== HAS_FAILED) throw new Error(`${test} ended with ${code}`)
    return code === HAS_FAILED
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Copies the built package and its tests to a temporary folder, which the caller removes. */
export async function copyPackage(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-mutant-'))
  for (const part of ['build/lib', 'build/test', 'build/package.json', 'package.json']) {
    await cp(join(ROOT, part), join(folder, part), { recursive: true })
  }
  for (const part of ['node_modules', 'examples', 'scripts'])
    await symlink(join(ROOT, part), join(folder, part))
  return folder
}

const HAS_FAILED = 1
/** A test that waits for ever for what a mistake keeps from happening is ended after this time, and has failed. */
const LONGEST_MS = 60_000
/** Also in the long tests: at their size some files take longer than {@link LONGEST_MS}, with and without a mistake. */
const FULL = { MILLRACE_TESTS: 'full' }
/** A mistake may keep a claim from ever coming true: it fails sooner here, and in fewer variants. */
const SOONER = { MILLRACE_TEST_WAIT_MS: '8000', MILLRACE_TESTS: 'quick' }

/** Runs a file in a process group of its own: what it has started ends with it. */
async function exitCode(file: string): Promise<number | undefined> {
  const env = { ...process.env, ...(file.includes('conformance') ? SOONER : FULL) }
  const { code, isTimedOut } = await runGroup([process.execPath, file], env, LONGEST_MS)
  return isTimedOut ? HAS_FAILED : code
}
