import type { TestFile } from './files.js'

export type Side = 'typescript' | 'addon'

/** One run of a test file, with the addon or without. */
export interface Run {
  readonly file: TestFile
  readonly side: Side
  readonly isAlone: boolean
  readonly isFirst: boolean
}

/** Folders of tests that run without the addon and with it. A file elsewhere runs once: with the addon, if there is one. */
const TWICE = {
  quick: /^(algorithms|engines(?!\/pool)|limiter)\//,
  full: /^(algorithms|attack|clock|engines|limiter|range-sum|soak|stress)\//,
}

export interface Wish {
  /** A file runs if its name matches one of them, or if there are none. */
  readonly patterns: readonly RegExp[]
  readonly size: 'quick' | 'full'
  /** The sides that can run here. */
  readonly sides: readonly Side[]
}

/** What runs in that size. The full one also has the side that the quick one leaves out. */
export function plan(files: readonly TestFile[], { patterns, size, sides }: Wish): Run[] {
  const isWished = ({ name }: TestFile) =>
    patterns.length === 0 || patterns.some((pattern) => pattern.test(name))
  const sidesIn = (file: TestFile): readonly Side[] => {
    const quick = file.marks.has('full') ? [] : sidesOf(file, 'quick', sides)
    if (size === 'quick') return quick
    const full = sidesOf(file, 'full', sides)
    if (file.marks.has('full') || file.marks.has('also-full')) return full
    return full.filter((side) => !quick.includes(side))
  }
  return files.filter(isWished).flatMap((file) =>
    sidesIn(file).map((side) => ({
      file,
      side,
      isAlone: file.marks.has('alone'),
      isFirst: file.marks.has('first'),
    })),
  )
}

/** A file that needs an addon that is not there runs all the same: its tests count as skipped. */
function sidesOf({ name, marks }: TestFile, size: Wish['size'], sides: readonly Side[]): readonly Side[] {
  if (marks.has('typescript')) return ['typescript']
  if (marks.has('addon') || !TWICE[size].test(name)) return sides.slice(-1)
  return sides
}
