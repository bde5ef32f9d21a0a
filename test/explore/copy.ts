// Copies of the built code with edits: memory simulated by a machine, a smaller constant, or a deliberate
// mistake.
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { InlineEngine } from '#millrace/engines/inline.js'
import type { InlineGroup } from '#millrace/inline-group.js'
import type { attachArena, createArena } from '#millrace/memory/arena.js'
import type { createArenas } from '#millrace/memory/arenas.js'
import type { KeyHandle } from '#millrace/memory/keys.js'
import type { OneRuleLimiter } from '#millrace/one-rule-limiter.js'
import type { RulesLimiter } from '#millrace/rules-limiter.js'
import type { Machine } from './machine.js'

const BUILT = fileURLToPath(new URL('../../../esm/', import.meta.url))
const STEPPED_WORDS = fileURLToPath(new URL('./stepped-words.js', import.meta.url))

/** A replacement of text in one built file. */
export interface Edit {
  /** The path below `esm`. */
  readonly file: string
  /** The text to replace. It must occur exactly once. */
  readonly find: string
  readonly replace: string
}

/** The parts of the shipped code that the explorer runs, with everything below them. */
export interface Built {
  readonly InlineEngine: typeof InlineEngine
  readonly InlineGroup: typeof InlineGroup
  readonly KeyHandle: typeof KeyHandle
  readonly OneRuleLimiter: typeof OneRuleLimiter
  readonly RulesLimiter: typeof RulesLimiter
  readonly createArena: typeof createArena
  readonly createArenas: typeof createArenas
  readonly attachArena: typeof attachArena
  readonly playOn: (machine: Machine | undefined) => void
}

const PARTS = [
  'engines/inline',
  'inline-group',
  'memory/arena',
  'memory/arenas',
  'memory/keys',
  'memory/words',
  'one-rule-limiter',
  'rules-limiter',
]

/**
 * Loads a copy whose shared memory is simulated by a machine. The files are deleted at once: modules stay
 * loaded.
 */
export async function playableCopy(edits: readonly Edit[] = []): Promise<Built> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-explore-'))
  try {
    await cp(BUILT, folder, { recursive: true })
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
    await applyEdits(folder, edits)
    await cp(STEPPED_WORDS, join(folder, 'memory', 'words.js'))
    const parts = await Promise.all(PARTS.map((file) => import(join(folder, `${file}.js`))))
    return Object.assign({}, ...parts) as Built
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
