// Copies of the built code, changed here and there: with memory that a machine plays, with a scaled-down constant, with a
// mistake put in.
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { InlineEngine } from '#millrace/engines/inline.js'
import type { attachArena, createArena } from '#millrace/memory/arena.js'
import type { Machine } from './machine.js'

const BUILT = fileURLToPath(new URL('../../../esm/', import.meta.url))
const STEPPED_WORDS = fileURLToPath(new URL('./stepped-words.js', import.meta.url))
const FOLDERS = ['algorithms', 'core', 'engines', 'memory', 'native', 'range-sum']

/** One place of the built code, and what shall stand there. */
export interface Edit {
  /** Below `esm`. */
  readonly file: string
  /** Must occur exactly once. */
  readonly find: string
  readonly replace: string
}

/** What the explorer plays: the shipped code from the engine down. */
export interface Built {
  readonly InlineEngine: typeof InlineEngine
  readonly createArena: typeof createArena
  readonly attachArena: typeof attachArena
  readonly playOn: (machine: Machine | undefined) => void
}

/** Loads a copy whose shared memory is played by a machine. It is deleted again at once: modules stay loaded. */
export async function playableCopy(edits: readonly Edit[] = []): Promise<Built> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-explore-'))
  try {
    for (const name of FOLDERS) await cp(join(BUILT, name), join(folder, name), { recursive: true })
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
    await applyEdits(folder, edits)
    await cp(STEPPED_WORDS, join(folder, 'memory', 'words.js'))
    const [engine, arena, words] = await Promise.all(
      ['engines/inline.js', 'memory/arena.js', 'memory/words.js'].map((file) => import(join(folder, file))),
    )
    return { ...engine, ...arena, ...words } as Built
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** @throws Error where a place is not found, or found twice: the code has changed, and the edit must */
export async function applyEdits(folder: string, edits: readonly Edit[]): Promise<void> {
  for (const { file, find, replace } of edits) {
    const path = join(folder, file)
    const code = await readFile(path, 'utf8')
    const places = code.split(find).length - 1
    if (places !== 1) throw new Error(`${file} has ${places} places like: ${find}`)
    await writeFile(
      path,
      code.replace(find, () => replace),
    )
  }
}

/** So many places in a set: an insertion looks at fewer, and all of its interleavings can be explored. */
export function waysPerSet(ways: number): Edit {
  return layout('export const WAYS_PER_SET = 16;', `export const WAYS_PER_SET = ${ways};`)
}

/** Blocks of two buckets, and two levels of block sums from three buckets on: for the same reason. */
export const SMALL_BLOCKS: readonly Edit[] = [
  layout('export const BLOCK_BITS = 6;', 'export const BLOCK_BITS = 1;'),
  layout('const MOST_BLOCKS = 64;', 'const MOST_BLOCKS = 1;'),
]

function layout(find: string, replace: string): Edit {
  return { file: 'memory/layout.js', find, replace }
}
