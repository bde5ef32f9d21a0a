// Copies of the built code with edits: memory simulated by a machine, a smaller constant, or a deliberate
// mistake.
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

/** A replacement of text in one built file. */
export interface Edit {
  /** The path below `esm`. */
  readonly file: string
  /** The text to replace. It must occur exactly once. */
  readonly find: string
  readonly replace: string
}

/** The parts of the shipped code that the explorer runs: the engine and everything below it. */
export interface Built {
  readonly InlineEngine: typeof InlineEngine
  readonly createArena: typeof createArena
  readonly attachArena: typeof attachArena
  readonly playOn: (machine: Machine | undefined) => void
}

/**
 * Loads a copy whose shared memory is simulated by a machine. The files are deleted at once: modules stay
 * loaded.
 */
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

/** @throws Error if the text does not occur exactly once: the code has changed, and the edit must follow */
export async function applyEdits(folder: string, edits: readonly Edit[]): Promise<void> {
  for (const { file, find, replace } of edits) {
    const path = join(folder, file)
    const code = await readFile(path, 'utf8')
    const places = code.split(find).length - 1
    if (places !== 1) throw new Error(`${file} contains this text ${places} times instead of once: ${find}`)
    await writeFile(
      path,
      code.replace(find, () => replace),
    )
  }
}

/**
 * Sets the number of ways in a set. With few ways an insertion is short, and all interleavings can be
 * explored.
 */
export function waysPerSet(ways: number): Edit {
  return layout('export const WAYS_PER_SET = 16;', `export const WAYS_PER_SET = ${ways};`)
}

/** Makes blocks of two buckets, and two levels of block sums from three buckets on, for the same reason. */
export const SMALL_BLOCKS: readonly Edit[] = [
  layout('export const BLOCK_BITS = 6;', 'export const BLOCK_BITS = 1;'),
  layout('const MOST_BLOCKS = 64;', 'const MOST_BLOCKS = 1;'),
]

function layout(find: string, replace: string): Edit {
  return { file: 'memory/layout.js', find, replace }
}
