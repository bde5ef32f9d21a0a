import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import { ran } from '../streams.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-config-'))
let made = 0
process.once('exit', () => rmSync(folder, { recursive: true }))

/** The path of a file with this text. */
export function fileOf(text: string | Buffer, name = 'policies.jsonl'): string {
  const path = join(newFolder(), name)
  writeFileSync(path, text)
  return path
}

export function newFolder(): string {
  const path = join(folder, String(made++))
  mkdirSync(path)
  return path
}

/** Runs `millrace config` with a store. */
export type On = (...args: string[]) => ReturnType<typeof ran>

/** The URLs of new stores that need no server. */
const URLS: Record<string, () => string> = {
  lmdb: () => `lmdb:${join(newFolder(), 'limits')}`,
  file: () => `file:${join(newFolder(), 'policies.json')}`,
}

/** Registers a test for each kind of store. `url` is that of a store that does not exist yet. */
export function onStores(name: string, act: (on: On, url: string) => Promise<void>): void {
  for (const [kind, make] of Object.entries(URLS))
    test(`${kind}: ${name}`, async () => {
      const url = make()
      await act((...args) => ran(['config', ...args, '--store', url]), url)
    })
}

/** A line for each of these policies, as `export` writes them. */
export const linesOf = (policies: Record<string, object>): string =>
  Object.entries(policies)
    .map(([key, policy]) => `${JSON.stringify({ key, policy })}\n`)
    .join('')

/** Policies of `count` keys. */
export function many(count: number): Record<string, object> {
  const numbers = Array.from({ length: count }, (_, i) => i)
  return Object.fromEntries(
    numbers.map((i) => [`user:${String(i).padStart(6, '0')}`, { limit: 1 + (i % 50), window: '1m' }]),
  )
}
