import type { TestFile } from './files.js'

export type Side = 'typescript' | 'addon'

/** One run of a test file, with or without the addon. */
export interface Run {
  readonly file: TestFile
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

export interface Selection {
  /** A file runs if its name matches one of the patterns, or if there are none. */
  readonly patterns: readonly RegExp[]
  readonly size: 'quick' | 'full'
  /** The sides that can run on this machine. */
  readonly sides: readonly Side[]
}

/** The runs of a size. The full size also has the sides that the quick size omits. */
export function plan(files: readonly TestFile[], { patterns, size, sides }: Selection): Run[] {
  const isSelected = ({ name }: TestFile) =>
    patterns.length === 0 || patterns.some((pattern) => pattern.test(name))
  const sidesIn = (file: TestFile): readonly Side[] => {
    const quick = file.marks.has('full') ? [] : sidesOf(file, 'quick', sides)
    if (size === 'quick') return quick
    const full = sidesOf(file, 'full', sides)
    if (file.marks.has('full') || file.marks.has('also-full')) return full
    return full.filter((side) => !quick.includes(side))
  }
  return files.filter(isSelected).flatMap((file) =>
    sidesIn(file).map((side) => ({
      file,
      side,
      isAlone: file.marks.has('alone'),
      isFirst: file.marks.has('first'),
    })),
  )
}

/** A file that needs a missing addon runs too; its tests count as skipped. */
function sidesOf(
  { name, marks }: TestFile,
  size: Selection['size'],
  sides: readonly Side[],
): readonly Side[] {
  if (marks.has('typescript')) return ['typescript']
  const isOnce = marks.has('addon') || (marks.has('once') && size === 'quick')
  if (isOnce || !TWICE[size].test(name)) return sides.slice(-1)
  return sides
}
