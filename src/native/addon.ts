import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { MillraceError } from '../core/errors.js'
import { ownFile } from '../core/own-file.js'
import type { Arena } from '../memory/records.js'
import { CONSTANTS_HASH } from './constants-hash.js'
import type { NativeFiles } from './files.js'
import type { NativeParams } from './native-params.js'

/**
 * What `native/addon.cc` exports. Every function checks its arguments and throws a TypeError or a RangeError.
 */
export interface Addon {
  /** Functions for shared files. Absent on Windows. */
  readonly files?: NativeFiles
  /** The hash of the constants that the addon was compiled with. @see CONSTANTS_HASH */
  readonly constantsHash: string
  /** The system's monotonic clock in milliseconds. Absent on Windows. @see readsDefaultClock */
  readonly monotonicMs?: () => number
  /** Asks for huge pages. Returns 0, or the number of the system's error. Only on Linux. @see useHugePages */
  readonly useHugePages?: (words: Int32Array) => number
  /**
   * Decides keys in order. Returns the index of the first key that it left to TypeScript. @see NativeBatches
   */
  admitMany(
    words: Int32Array,
    fingerprints: Int32Array,
    costs: number | Float64Array,
    allowed: Uint8Array,
    at: Float64Array,
    seen: Int32Array,
    params: NativeParams,
    remaining?: Int32Array,
  ): number
  /** Serves requests in a ring. Returns the cursor at which it stopped. @see NativeRequestServer */
  serveRequests(words: Int32Array, ring: Int32Array, params: NativeParams): number
  /**
   * Returns a function that carries out the operation in `call` on `words`, as often as it is called. Both
   * arrays must be on SharedArrayBuffers. @see NativeSingle
   */
  single(words: Int32Array, params: NativeParams, call: Int32Array): () => void
  /**
   * The same for a decision by several rules, whose calls stand one after the other in `calls`. All arrays of
   * words must be on SharedArrayBuffers. @see NativeSeries
   */
  series(words: readonly Int32Array[], params: readonly NativeParams[], calls: Int32Array): () => void
}

/** The result of loading the addon in this thread. */
type Loaded = { readonly addon: Addon } | { readonly addon?: undefined; readonly cause: unknown }
type Environment = Readonly<Record<string, string | undefined>>

let loaded: Loaded | undefined

/**
 * Returns the addon, which each thread loads once. Returns undefined if this machine has no build, if the
 * build was compiled with other constants (after a warning), or if `MILLRACE_NATIVE` is 0.
 * @throws MillraceError `ERR_MILLRACE_NO_ADDON` if there is no addon and `MILLRACE_NATIVE` is 1
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

/** The addon as one engine uses it. It stays the same for the engine's life. */
export interface ChosenAddon {
  /** Undefined if TypeScript decides. */
  readonly addon: Addon | undefined
  /** Whether `MILLRACE_NATIVE` is 1. Then the addon also handles batches that are too small to be faster. */
  readonly handlesAll: boolean
}

/** Reads `MILLRACE_NATIVE`. @throws MillraceError as {@link addonFor} */
export function chooseAddon(environment: Environment = process.env): ChosenAddon {
  return { addon: addonFor(environment), handlesAll: environment.MILLRACE_NATIVE === '1' }
}

/**
 * Returns the addon if there is one. Beyond the limits of `isExact` doubles
 * can't tell one granule from the next. The addon has no calendar: TypeScript decides by that.
 */
export function addonForArena({ addon }: ChosenAddon, arena: Arena): Addon | undefined {
  const { align, shape, originMs } = arena
  const isExact = shape.windowMs <= Number.MAX_SAFE_INTEGER && Math.abs(originMs) <= Number.MAX_SAFE_INTEGER
  return isExact && align !== 'calendar' ? addon : undefined
}

/**
 * Returns the addon for a feature that TypeScript does not have.
 * @throws MillraceError `ERR_MILLRACE_NO_ADDON` for the option that needs the addon
 */
export function neededAddon(option: string, value: unknown): Addon {
  const addon = addonFor()
  if (addon !== undefined) return addon
  const isOff = process.env.MILLRACE_NATIVE === '0'
  const cause = isOff || loaded?.addon !== undefined ? undefined : loaded?.cause
  const why = isOff ? ', which MILLRACE_NATIVE=0 has switched off' : `: ${howToGetIt(cause)}`
  throw new MillraceError('ERR_MILLRACE_NO_ADDON', option, value, `the C++ addon${why}`, { cause })
}

/** How Node.js says that an addon may not be loaded, or its file not be read. */
const REFUSED: ReadonlySet<unknown> = new Set(['ERR_DLOPEN_DISABLED', 'ERR_ACCESS_DENIED'])

function load(): Loaded {
  try {
    const require = createRequire(import.meta.url)
    const find: (folder: string) => Addon = require('node-gyp-build')
    return accepted(find(fileURLToPath(ownFile('../'))))
  } catch (cause) {
    return { cause } // no build for this machine, or a bundled package: TypeScript decides everything
  }
}

/** Refuses an addon with other constants, which would corrupt the counts, and warns once. */
export function accepted(addon: Addon): Loaded {
  if (addon.constantsHash === CONSTANTS_HASH) return { addon }
  const hashes = `their hash is ${addon.constantsHash} there and ${CONSTANTS_HASH} here`
  const message = `the addon was compiled with other constants, and is not used: ${hashes}`
  process.emitWarning(message, { type: 'MillraceWarning', code: 'MILLRACE_NATIVE_MISMATCH' })
  return { cause: new Error(message) }
}

function noAddonError(cause: unknown): MillraceError {
  const expected = `a build of the addon, as MILLRACE_NATIVE is 1: ${howToGetIt(cause)}`
  return new MillraceError('ERR_MILLRACE_NO_ADDON', 'MILLRACE_NATIVE', 'none', expected, { cause })
}

function howToGetIt(cause: unknown): string {
  if (REFUSED.has((Object(cause) as NodeJS.ErrnoException).code))
    return (
      'Node.js refuses to load it here; start it without --no-addons, and beside --permission with ' +
      '--allow-addons and --allow-fs-read for the folder of the package'
    )
  return (
    `install a release that has one for ${process.platform}-${process.arch} in prebuilds/, whole and not ` +
    'bundled, or build it in a clone by `npm run build:native` (Python 3 and a C++20 compiler)'
  )
}
