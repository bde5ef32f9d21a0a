import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { MillraceError } from '../core/errors.js'
import { ownFile } from '../core/own-file.js'
import type { NativeFiles } from './files.js'
import { differenceOf } from './layout.js'

/** What `native/addon.cc` exports. Every function checks what it is given: a TypeError or a RangeError, never a crash. */
export interface Addon {
  /** Absent where the system has no such files: Windows. */
  readonly files?: NativeFiles
  readonly layout: Readonly<Record<string, number>>
  /** Whether it can read the clock that `monotonicClock` reads. */
  readonly readsClock: boolean
  /** Decides keys in order; the index of the first that it left to us. @see NativeBatches */
  admitMany(
    words: Int32Array,
    fingerprints: Int32Array,
    costs: number | Float64Array,
    allowed: Uint8Array,
    at: Float64Array,
    seen: Int32Array,
    plan: Float64Array,
    remaining?: Int32Array,
  ): number
  /** Answers what is asked in a ring of slots; the cursor at which it stopped. @see NativeSlots */
  answerSlots(words: Int32Array, ring: Int32Array, plan: Float64Array): number
  /** A function that does what `call` says on `words`, again and again; both on a SharedArrayBuffer. @see NativeSingle */
  single(words: Int32Array, plan: Float64Array, call: Int32Array): () => void
}

/** What became of the addon in this thread. */
type Outcome = { readonly addon: Addon } | { readonly addon?: undefined; readonly cause: unknown }
type Environment = Readonly<Record<string, string | undefined>>

let loaded: Outcome | undefined

/**
 * The addon, loaded once a thread; undefined where there is none for this machine, where it is of another layout (with a
 * warning), or where `MILLRACE_NATIVE` is 0.
 * @throws MillraceError `ERR_MILLRACE_NO_ADDON` where there is none and `MILLRACE_NATIVE` is 1
 */
export function addonFor(environment: Environment = process.env): Addon | undefined {
  const wish = environment.MILLRACE_NATIVE ?? ''
  if (wish !== '' && wish !== '0' && wish !== '1') {
    const expected = "'0' (never the addon), '1' (never without it), or nothing"
    throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'MILLRACE_NATIVE', wish, expected)
  }
  if (wish === '0') return undefined
  loaded ??= load()
  if (loaded.addon === undefined && wish === '1') throw noAddonError(loaded.cause)
  return loaded.addon
}

/** For what only the addon can do. @throws MillraceError `ERR_MILLRACE_NO_ADDON` of the option that asks for it */
export function neededAddon(option: string, value: unknown): Addon {
  const addon = addonFor()
  if (addon !== undefined) return addon
  const isOff = process.env.MILLRACE_NATIVE === '0'
  const why = isOff ? ', which MILLRACE_NATIVE=0 has switched off' : `: ${howToGetIt()}`
  const cause = isOff || loaded?.addon !== undefined ? undefined : loaded?.cause
  throw new MillraceError('ERR_MILLRACE_NO_ADDON', option, value, `the C++ addon${why}`, { cause })
}

function load(): Outcome {
  try {
    const require = createRequire(import.meta.url)
    const find: (folder: string) => Addon = require('node-gyp-build')
    return accepted(find(fileURLToPath(ownFile('./'))))
  } catch (cause) {
    return { cause } // no build for this machine, or the package lies in a bundle: TypeScript does all of it
  }
}

/** An addon of another layout would corrupt the counts: it is not used, and that is said once. */
export function accepted(addon: Addon): Outcome {
  const difference = differenceOf(addon.layout)
  if (difference === undefined) return { addon }
  const message = `the addon was built for another layout of memory, and is not used: ${difference}`
  process.emitWarning(message, { type: 'MillraceWarning', code: 'MILLRACE_NATIVE_MISMATCH' })
  return { cause: new Error(message) }
}

function noAddonError(cause: unknown): MillraceError {
  const expected = `a build of the addon, as MILLRACE_NATIVE is 1: ${howToGetIt()}`
  return new MillraceError('ERR_MILLRACE_NO_ADDON', 'MILLRACE_NATIVE', 'none', expected, { cause })
}

function howToGetIt(): string {
  return (
    `install a release that has one for ${process.platform}-${process.arch} in prebuilds/, whole and not bundled, or build it ` +
    'in a clone by `npm run build:native` (Python 3 and a C++20 compiler)'
  )
}
