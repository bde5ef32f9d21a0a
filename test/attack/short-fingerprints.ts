// A build with fingerprints of 8 bits instead of 64, so that collisions can be tested.
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Hasher } from '#millrace/memory/hash.js'

const BUILT = fileURLToPath(new URL('../../lib', import.meta.url))
const MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url))

/**
 * Replacements for the last lines of the hash: one byte, repeated, so that the choice of sets is unchanged.
 */
const PATCHES = [
  ['this.lo = v1 ^ v3 || 1;', 'this.lo = Math.imul((v1 ^ v3) & 0xff, 0x01010101) || 1;'],
  ['this.hi = (v1 ^ v3) & HASH;', 'this.hi = 0;'],
] as const

export interface ShortBuild {
  millrace: typeof import('millrace')
  Hasher: typeof Hasher
}

/** Calls `use` with a copy of the built package that has 8-bit fingerprints. */
export async function withShortFingerprints(use: (build: ShortBuild) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-fingerprints-'))
  try {
    cpSync(BUILT, folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n')
    symlinkSync(MODULES, join(folder, 'node_modules'))
    const file = join(folder, 'memory', 'hash.js')
    let code = readFileSync(file, 'utf8')
    for (const [from, to] of PATCHES) {
      if (code.split(from).length !== 2) throw new Error(`expected exactly once in hash.js: ${from}`)
      code = code.replace(from, to)
    }
    writeFileSync(file, code)
    const load = (path: string) => import(pathToFileURL(join(folder, path)).href)
    use({ millrace: await load('index.js'), Hasher: (await load('memory/hash.js')).Hasher })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
