// The js blocks of the pages, each a program that runs as it stands.
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readText, root } from './root.js'

const TIME_LIMIT_MS = 30_000
const NEEDS_ADDON = '<!-- needs the addon -->\n'
const NEEDS_REDIS = '<!-- needs redis -->\n'
/**
 * Matches the reason for which a block is not run: another test runs it, or a dependency is not installed.
 */
const NOT_RUN = /<!-- not run: \S.* -->\n$/

/** A js block, and where it is. */
export interface Block {
  readonly code: string
  readonly page: string
  readonly line: number
  readonly needsAddon: boolean
  readonly needsRedis: boolean
}

/** `testing-docs.test.ts` runs those of testing.md. */
const howTos = readdirSync(join(root, 'docs/how-to')).filter((file) => file !== 'testing.md')
const pages = [
  'README.md',
  'docs/tutorial.md',
  'docs/configuration.md',
  'docs/explanation/engines.md',
  'docs/reference/events.md',
  'docs/reference/metrics.md',
  'docs/reference/stats.md',
  ...howTos.map((file) => `docs/how-to/${file}`),
]

export const blocks: readonly Block[] = pages.flatMap((page) => {
  const text = readText(page)
  return [...text.matchAll(/^```js[^\n]*\n([\s\S]*?)^```/gm)]
    .map(({ 1: code = '', index }) => ({ code, page, before: text.slice(0, index) }))
    .filter(({ before }) => !NOT_RUN.test(before))
    .map(({ code, page, before }) => ({
      code,
      page,
      needsAddon: before.endsWith(NEEDS_ADDON),
      needsRedis: before.endsWith(NEEDS_REDIS),
      line: before.split('\n').length,
    }))
})

/**
 * Runs a module from its own file, because an example may start itself as a worker. The file is in build/,
 * inside the package, so that `millrace` resolves to the package itself.
 */
export function runModule(
  name: string,
  code: string,
  env = process.env,
  options: readonly string[] = [],
): Promise<{ status: number | null; output: string }> {
  const file = join(root, 'build', `readme-${process.pid}-${name}.mjs`)
  writeFileSync(file, code)
  return new Promise((resolve, reject) => {
    const cwd = mkdtempSync(join(tmpdir(), 'millrace-readme-')) // receives the files that the block writes
    const child = spawn(process.execPath, [...options, file], { cwd, env, timeout: TIME_LIMIT_MS })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (output += chunk))
    child.on('error', reject)
    child.on('close', (status) => {
      rmSync(file)
      rmSync(cwd, { recursive: true })
      resolve({ status, output })
    })
  })
}
