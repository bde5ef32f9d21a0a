import type { TestFile } from './files.js'

export type Side = 'typescript' | 'addon'

/** One process, with or without the addon: of a test file, or of several that can share it. */
export interface Run {
  readonly files: readonly TestFile[]
  readonly side: Side
  readonly isAlone: boolean
  readonly isFirst: boolean
}

/**
 * Folders whose tests run with and without the addon. Other files run once: with the addon if it is built.
 */
const TWICE = {
  quick: /^(algorithms|engines(?!\/pool))\//,
  full: /^(algorithms|attack|clock|conformance|engines|limiter|range-sum|soak|stress)\//,
}

/**
 * Folders whose tests have a process for each file. In other folders several files share a process: much of their time is
 * its start. Files that have a full or a long size share none.
 */
const OWN = /^(attack|engines\/pool|examples|explore|model|mutants|native\/fuzz|package|soak|stress)\//
/**
 * Folders whose tests run on dist/, as published. All others run on the modules of build/lib/: a process has one copy of
 * each (`scripts/dev-package.mjs`).
 */
const BUNDLED =
  /^(backend|cli|client|clock|compat|config|conformance|engines\/pool|examples|fetch|http|limiter|memcached|metrics|monitoring|package|redis|remote|service|shared-file)\b/

/** Whether a file runs on dist/. */
export const isOnBundle = ({ name, marks }: TestFile): boolean => BUNDLED.test(name) && !marks.has('modules')

/** The options of Node.js for a run, and for all processes that it starts. */
export function nodeOptionsOf({ files }: Run): string {
  return isOnBundle(files[0]!) ? '--conditions=millrace-bundle' : ''
}

/** Of a process, so that several have work. */
const MOST_FILES = 12

export interface Selection {
  /** A file runs if its name matches one of the patterns, or if there are none. */
  readonly patterns: readonly RegExp[]
  readonly size: 'quick' | 'full' | 'long'
  /** The sides that can run on this machine. */
  readonly sides: readonly Side[]
}

/** The runs of a size. The full size also has the sides that the quick size omits. */
export function plan(files: readonly TestFile[], { patterns, size, sides }: Selection): Run[] {
  const isSelected = ({ name }: TestFile) =>
    patterns.length === 0 || patterns.some((pattern) => pattern.test(name))
  const sidesIn = (file: TestFile): readonly Side[] => {
    const { marks } = file
    const full = sidesOf(file, 'full', sides)
    if (size === 'long') return marks.has('long') || marks.has('also-long') ? full : []
    if (marks.has('long')) return []
    const quick = marks.has('full') ? [] : sidesOf(file, 'quick', sides)
    if (size === 'quick') return quick
    if (marks.has('full') || marks.has('also-full')) return full
    return full.filter((side) => !quick.includes(side))
  }
  const runs: Run[] = []
  /** The files that share the next process of a folder, for each folder and its sides. */
  const shared = new Map<string, TestFile[]>()
  for (const file of files.filter(isSelected)) {
    const sides = sidesIn(file)
    if (sides.length === 0) continue
    const key = isQuickSized(file, size) ? keyOf(file, sides) : undefined
    const together = (key !== undefined && shared.get(key)) || []
    together.push(file)
    if (together.length > 1) {
      if (together.length === MOST_FILES) shared.delete(key!)
      continue
    }
    if (key !== undefined) shared.set(key, together)
    const [isAlone, isFirst] = [file.marks.has('alone'), file.marks.has('first')]
    for (const side of sides) runs.push({ files: together, side, isAlone, isFirst })
  }
  return runs
}

/** Whether a file does no more than in the quick tests: the full ones run it on the other side only. */
const isQuickSized = ({ marks }: TestFile, size: Selection['size']): boolean =>
  size === 'quick' || (size === 'full' && !marks.has('full') && !marks.has('also-full'))

/** Files with the same key share processes. Undefined: the file has a process of its own. */
function keyOf(file: TestFile, sides: readonly Side[]): string | undefined {
  const { name, marks } = file
  const isOwn = marks.has('own') || marks.has('alone') || marks.has('first')
  return isOwn || OWN.test(name)
    ? undefined
    : `${name.slice(0, name.lastIndexOf('/'))} ${sides} ${isOnBundle(file)}`
}

/** A file that needs a missing addon runs too; its tests count as skipped. */
function sidesOf({ name, marks }: TestFile, size: 'quick' | 'full', sides: readonly Side[]): readonly Side[] {
  if (marks.has('typescript')) return ['typescript']
  const isOnce = marks.has('addon') || (marks.has('once') && size === 'quick')
  if (isOnce || !TWICE[size].test(name)) return sides.slice(-1)
  return sides
}
