import { MillraceError } from '../core/errors.js'
import type { Hasher } from './hash.js'

/** The longest key, in UTF-16 units. */
export const MAX_KEY_LENGTH = 65_536

/**
 * A key hashed once: accepted wherever a key is by the limiter that made it. Valid for ever, also after its key was
 * displaced; it remembers where the key was, which saves the search.
 */
export class KeyHandle {
  /** @internal */
  readonly owner: object
  /** @internal */
  readonly lo: number
  /** @internal */
  readonly hi: number
  /** @internal Where the key was when this handle was last used, or -1. */
  way = -1

  /** @internal */
  constructor(owner: object, lo: number, hi: number) {
    this.owner = owner
    this.lo = lo
    this.hi = hi
  }
}

/** Keys hashed once, in one typed array: for batches. Accepted by the limiter that made them. */
export class PackedKeys {
  /** @internal */
  readonly owner: object
  /** @internal lo, hi, lo, hi, ... */
  readonly fingerprints: Int32Array
  /** How many keys. */
  readonly length: number

  /** @internal */
  constructor(owner: object, fingerprints: Int32Array) {
    this.owner = owner
    this.fingerprints = fingerprints
    this.length = fingerprints.length / 2
  }
}

/** A key: 1 to 65,536 characters, or a handle. */
export type Key = string | KeyHandle

/** @throws MillraceError `ERR_MILLRACE_INVALID_KEY` */
export function checkKeyString(key: unknown, option: string): asserts key is string {
  if (typeof key !== 'string' || key.length === 0 || key.length > MAX_KEY_LENGTH) {
    const expected = `a string of 1 to ${MAX_KEY_LENGTH} characters, or a handle`
    throw new MillraceError('ERR_MILLRACE_INVALID_KEY', option, key, expected)
  }
}

/** @throws MillraceError `ERR_MILLRACE_FOREIGN_HANDLE` */
export function checkOwner(key: KeyHandle | PackedKeys, owner: object, option: string): void {
  if (key.owner !== owner) {
    const expected = 'a handle or packed keys of this very limiter'
    throw new MillraceError('ERR_MILLRACE_FOREIGN_HANDLE', option, key, expected)
  }
}

/** The fingerprints of an array of keys, all of them checked. */
export function fingerprintsOf(keys: readonly Key[], hasher: Hasher, owner: object): Int32Array {
  const fingerprints = new Int32Array(2 * keys.length)
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i]!
    if (key instanceof KeyHandle) {
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
