import { MillraceError } from '../core/errors.js'
import { type Inspect, inspectAs } from '../core/inspect.js'
import type { Hasher } from './hash.js'

/** The longest key, in UTF-16 units. */
export const MAX_KEY_LENGTH = 65_536

/** The most keys of one array. Their fingerprints take half a GiB. */
const MAX_KEYS = 2 ** 26

/**
 * A key that is hashed once. `limiter.handle` returns it, and that limiter accepts it in place of the key. It
 * stays valid after the key was evicted. It remembers the key's place in the table, which saves the search.
 */
export class KeyHandle {
  /** Only objects that this class made have this field; proxies and objects that inherit from one do not. */
  readonly #owner: object
  /** @internal */
  readonly lo: number
  /** @internal */
  readonly hi: number
  /** Private, so that a frozen handle still works. */
  #way = -1

  /** @internal */
  static is(value: unknown): value is KeyHandle {
    return typeof value === 'object' && value !== null && #owner in value
  }

  /** @internal */
  constructor(owner: object, lo: number, hi: number) {
    this.#owner = owner
    this.lo = lo
    this.hi = hi
  }

  /** The output of `console.log`. The handle does not keep the key itself. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    return inspectAs('KeyHandle', { fingerprint: hex(this.hi) + hex(this.lo) }, options, inspect)
  }

  /** @internal */
  isOf(owner: object): boolean {
    return this.#owner === owner
  }

  /** @internal The key's way at the last use of this handle, or -1. */
  get way(): number {
    return this.#way
  }

  set way(way: number) {
    this.#way = way
  }
}

/**
 * Keys that are hashed once, in one typed array. `limiter.pack` returns them, for `checkMany` of the same
 * limiter.
 */
export class PackedKeys {
  readonly #owner: object
  /** @internal lo, hi, lo, hi, ... */
  readonly fingerprints: Int32Array
  /** The number of keys. */
  readonly length: number

  /** @internal */
  constructor(owner: object, fingerprints: Int32Array) {
    this.#owner = owner
    this.fingerprints = fingerprints
    this.length = fingerprints.length / 2
    Object.freeze(this)
  }

  /** The output of `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    return inspectAs('PackedKeys', { length: this.length }, options, inspect)
  }

  /** @internal */
  static is(value: unknown): value is PackedKeys {
    return typeof value === 'object' && value !== null && #owner in value
  }

  /** @internal */
  isOf(owner: object): boolean {
    return this.#owner === owner
  }
}

const hex = (half: number): string => (half >>> 0).toString(16).padStart(8, '0')

/** A key: a string of 1 to 65,536 characters, or a handle of the same limiter. */
export type Key = string | KeyHandle

/** Whether a limiter accepts it as a key that is no handle. */
export const isKeyString = (key: unknown): key is string =>
  typeof key === 'string' && key.length > 0 && key.length <= MAX_KEY_LENGTH

/** @throws MillraceError `ERR_MILLRACE_INVALID_KEY` */
export function checkKeyString(key: unknown, option: string): asserts key is string {
  if (!isKeyString(key)) {
    const expected = `a string of 1 to ${MAX_KEY_LENGTH} characters, or a handle`
    throw new MillraceError('ERR_MILLRACE_INVALID_KEY', option, key, expected)
  }
}

/** @throws MillraceError `ERR_MILLRACE_FOREIGN_HANDLE` */
export function checkOwner(key: KeyHandle | PackedKeys, owner: object, option: string): void {
  if (!key.isOf(owner)) {
    const expected = 'a handle or packed keys of this limiter'
    throw new MillraceError('ERR_MILLRACE_FOREIGN_HANDLE', option, key, expected)
  }
}

/** Checks all keys of an array and returns their fingerprints. */
export function fingerprintsOf(keys: readonly Key[], hasher: Hasher, owner: object): Int32Array {
  const { length } = keys // read once: a proxy may return another length the next time
  if (!Number.isInteger(length) || length < 0 || length > MAX_KEYS) {
    const expected = `an array of at most ${MAX_KEYS} keys`
    throw new MillraceError('ERR_MILLRACE_INVALID_KEY', 'keys', keys, expected)
  }
  const fingerprints = new Int32Array(2 * length)
  for (let i = 0; i < length; i++) {
    const key = keys[i]!
    if (KeyHandle.is(key)) {
      checkOwner(key, owner, `keys[${i}]`)
      fingerprints[2 * i] = key.lo
      fingerprints[2 * i + 1] = key.hi
      continue
    }
    if (typeof key !== 'string' || key.length === 0 || key.length > MAX_KEY_LENGTH)
      checkKeyString(key, `keys[${i}]`)
    hasher.hash(key)
    fingerprints[2 * i] = hasher.lo
    fingerprints[2 * i + 1] = hasher.hi
  }
  return fingerprints
}
