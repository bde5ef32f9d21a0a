// Copies of the built code with edits: memory simulated by a machine, a smaller constant, or a deliberate
// mistake.
import { readdirSync, rmSync } from 'node:fs'
import { cp, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { algorithmFor } from '#millrace/algorithms/select.js'
import { Ticks } from '#millrace/core/ticks.js'
import type { InlineEngine } from '#millrace/engines/inline/inline.js'
import type { InlineGroup } from '#millrace/groups/inline-group.js'
import type { OneRuleLimiter } from '#millrace/limiters/one-rule-limiter.js'
import type { RulesLimiter } from '#millrace/limiters/rules-limiter.js'
import type { attachArena, createArena } from '#millrace/memory/arena.js'
import type { ArenaSpace } from '#millrace/memory/arena-space.js'
import type { changeWindowOf, createArenas } from '#millrace/memory/arenas.js'
import type { KeyHandle } from '#millrace/memory/keys.js'
import { ALGORITHMS } from '#millrace/memory/layout.js'
import type { Machine } from './machine.js'

export const BUILT = fileURLToPath(new URL('../../lib/', import.meta.url))
const STEPPED_WORDS = fileURLToPath(new URL('./stepped-words.js', import.meta.url))

/** A replacement of text in one built file. */
export interface Edit {
  /** The name of the built file, behind that of its folder where several have it. */
  readonly file: string
  /** The text to replace. It must occur exactly once. */
  readonly find: string
  readonly replace: string
}

/** The parts of the shipped code that the explorer runs, with everything below them. */
export interface Built {
  readonly ArenaSpace: typeof ArenaSpace
  readonly InlineEngine: typeof InlineEngine
  readonly InlineGroup: typeof InlineGroup
  readonly KeyHandle: typeof KeyHandle
  readonly OneRuleLimiter: typeof OneRuleLimiter
  readonly RulesLimiter: typeof RulesLimiter
  readonly algorithmFor: typeof algorithmFor
  readonly changeWindowOf: typeof changeWindowOf
  readonly createArena: typeof createArena
  readonly createArenas: typeof createArenas
  readonly attachArena: typeof attachArena
  readonly playOn: (machine: Machine | undefined) => void
}

const PARTS = [
  'algorithms/select',
  'inline',
  'inline-group',
  'arena',
  'arena-space',
  'arenas',
  'memory/keys',
  'words',
  'one-rule-limiter',
  'rules-limiter',
]

/** Loads a copy whose shared memory is simulated by a machine. Its files stay for what it loads at first use. */
export async function playableCopy(edits: readonly Edit[] = []): Promise<Built> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-explore-'))
  removeAtExit(folder)
  await cp(BUILT, folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
  await applyEdits(folder, edits)
  await cp(STEPPED_WORDS, builtFile(folder, 'words'))
  const parts = await Promise.all(PARTS.map((file) => import(builtFile(folder, file))))
  return watchingCarries(Object.assign({}, ...parts))
}

const copies: string[] = []

function removeAtExit(folder: string): void {
  if (copies.push(folder) > 1) return
  process.once('exit', () => {
    for (const copy of copies) rmSync(copy, { recursive: true, force: true })
  })
}

/**
 * Lets a machine know when its thread charges what a cell counted by another record, or takes it out again. The
 * ledger takes other charges for those of the thread's operation.
 */
function watchingCarries(built: Built): Built {
  let machine: Machine | undefined
  for (const name of ALGORITHMS) {
    const units = ['token-bucket', 'leaky-bucket', 'sliding-log'].includes(name) ? 1 : 0
    const time = { windowMs: 1, buckets: 1, units, offsetMs: 0, flags: 0 }
    const rule = {
      name: 'any',
      limit: 1,
      ...time,
      edge: 'strict',
      align: 'none',
      period: 'none',
      algorithm: name,
    } as const
    const arena = built.createArena(rule, 1, 'evict', 0)
    const algorithm = Object.getPrototypeOf(built.algorithmFor(arena, new Ticks(1, 1, arena.shape.modulus)))
    for (const method of ['carry', 'takeBack'] as const) {
      const own = algorithm[method]
      algorithm[method] = function (...args: Parameters<typeof own>) {
        machine!.isCarrying = true
        try {
          return own.apply(this, args)
        } finally {
          machine!.isCarrying = false
        }
      }
    }
  }
  const playOn = (next: Machine | undefined) => {
    machine = next
    built.playOn(next)
  }
  return { ...built, playOn }
}

/**
 * The path of a built file, in any folder but that of the entries, which only lead to others.
 * @throws Error if none or several have this name
 */
function builtFile(folder: string, name: string): string {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const found = paths.filter(
    (path) => `/${path.replaceAll(sep, '/')}`.endsWith(`/${name}.js`) && !/^entries\b/.test(path),
  )
  if (found.length !== 1) throw new Error(`${name} names ${found.length} built files: ${found.join(', ')}`)
  return join(folder, found[0]!)
}

/**
 * The files of a folder that edits change, as they then are.
 * @throws Error if the text does not occur exactly once: the code has changed, and the edit must follow
 */
export async function editedFiles(folder: string, edits: readonly Edit[]): Promise<Map<string, string>> {
  const files = new Map<string, string>()
  for (const { file, find, replace } of edits) {
    const path = builtFile(folder, file)
    const code = files.get(path) ?? (await readFile(path, 'utf8'))
    const places = code.split(find).length - 1
    if (places !== 1) throw new Error(`${file} contains this text ${places} times instead of once: ${find}`)
    files.set(
      path,
      code.replace(find, () => replace),
    )
  }
  return files
}

/** @throws Error as {@link editedFiles} does */
export async function applyEdits(folder: string, edits: readonly Edit[]): Promise<void> {
  for (const [path, code] of await editedFiles(folder, edits)) await writeFile(path, code)
}

/**
 * Smaller constants, with which operations are so short that all interleavings can be explored: sets of one
 * way; blocks of two buckets, and two levels of block sums from three buckets on; and ticks of a new record
 * that begin so soon after those of the old one that a cell's tick gets there in one hop. A thread of a
 * scenario must not stall for longer than that before it notices a change.
 */
export const SMALL_SIZES: readonly Edit[] = [
  layout('export const WAYS_PER_SET = 16;', 'export const WAYS_PER_SET = 1;'),
  cellSize('export const BLOCK_BITS = 6;', 'export const BLOCK_BITS = 1;'),
  cellSize('const MOST_BLOCKS = 64;', 'const MOST_BLOCKS = 1;'),
  cellSize('Math.max(MOST_LINEAR + 1, Math.ceil(buckets / 2))', 'Math.ceil(buckets / 2)'),
  { file: 'memory/records', find: 'const STALL_MS = 3_600_000;', replace: 'const STALL_MS = 8_000;' },
]

function layout(find: string, replace: string): Edit {
  return { file: 'layout', find, replace }
}

function cellSize(find: string, replace: string): Edit {
  return { file: 'cell-size', find, replace }
}
