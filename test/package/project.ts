// An empty project with the package installed as from the registry: packed and unpacked, with its
// dependencies next to it. The dependencies are links to ours, because tests do not use the network.
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { root } from './root.js'

const TIME_LIMIT_MS = 120_000

export interface Project {
  readonly folder: string
  readonly tarball: string
  /** The folder of the package in the project. */
  readonly installed: string
}

export interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Creates a project below the system's temporary folder. The caller removes it. */
export async function makeProject(): Promise<Project> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-package-'))
  const tarball = await pack(root, folder)
  const installed = join(folder, 'node_modules/millrace')
  await unpack(tarball, installed)
  const { dependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
  for (const name of Object.keys(dependencies)) linkModule(folder, name)
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  return { folder, tarball, installed }
}

/** Links one of our modules into the project. */
export function linkModule(folder: string, name: string): void {
  const link = join(folder, 'node_modules', name)
  mkdirSync(dirname(link), { recursive: true })
  symlinkSync(join(root, 'node_modules', name), link, 'junction')
}

/** The tarball of the package at `source`, written into `folder`. */
export async function pack(source: string, folder: string): Promise<string> {
  const npm = process.env.npm_execpath // set if npm runs the tests; Windows cannot spawn `npm`
  const args = ['pack', '--json', '--offline', '--no-update-notifier', '--pack-destination', folder]
  const out = await (npm ? succeed(process.execPath, [npm, ...args], source) : succeed('npm', args, source))
  const packed: { filename: string }[] | Record<string, { filename: string }> = JSON.parse(out)
  return join(folder, Object.values(packed)[0]!.filename) // an array, or from npm 11 on an object
}

/** Unpacks a tarball of npm's as `installed`. */
export async function unpack(tarball: string, installed: string): Promise<void> {
  mkdirSync(installed, { recursive: true })
  await succeed('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1'], dirname(installed))
}

/** Runs a command in `cwd`; resolves with its exit code and output, also on failure. */
export function run(command: string, args: string[], cwd: string, env = process.env): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(command, args, { cwd, env, timeout: TIME_LIMIT_MS, maxBuffer: 1e8 }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), out, err })
    })
  })
}

export const runNode = (args: string[], cwd: string, env = process.env) =>
  run(process.execPath, args, cwd, env)

/** The output on stdout. */
async function succeed(command: string, args: string[], cwd: string): Promise<string> {
  const { code, out, err } = await run(command, args, cwd)
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}\n${out}${err}`)
  return out
}
