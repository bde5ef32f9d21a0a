import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const FLAGS = ['-std=c++17', '-O2']

/** The system's C++ compiler: `CXX`, or the first of the usual names that runs. */
export function findCompiler(environment: NodeJS.ProcessEnv = process.env): string | undefined {
  return [environment.CXX, 'c++', 'g++', 'clang++'].find(
    (name) => name && spawnSync(name, ['--version'], { env: environment, stdio: 'ignore' }).status === 0,
  )
}

/**
 * Compiles a C++ program of one file, runs it once and returns its output.
 * @throws Error if there is no compiler, or if the compiler or the program fails
 */
export function compileAndRun(source: string, args: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  try {
    const program = join(folder, 'program')
    compile(source, program)
    return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 2] })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Compiles a C++ program of one file. @throws Error if there is no compiler, or if it fails */
export function compile(source: string, to: string, ...flags: readonly string[]): void {
  const compiler = findCompiler()
  if (compiler === undefined) throw new Error('no C++ compiler')
  execFileSync(compiler, [...FLAGS, ...flags, '-o', to, source], { stdio: ['ignore', 2, 2] })
}
