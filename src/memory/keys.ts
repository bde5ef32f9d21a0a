import { MillraceError } from '../core/errors.js'
import { type Inspect, inspectAs } from '../core/inspect.js'
import type { Hasher } from './hash.js'

/** The longest key, in UTF-16 units. */
export const MAX_KEY_LENGTH = 65_536

/** The most keys of one array, whose fingerprints take half a GiB. */
const MAX_KEYS = 2 ** 26

/**
 * A key hashed once: accepted wherever a key is by the limiter that made it. Valid for ever, also after its key was
 * displaced; it remembers where the key was, which saves the search.
 */
export class KeyHandle {
  /** What only this class makes has it: no proxy, and nothing that merely inherits. */
  readonly #owner: object
  /** @internal */
  readonly lo: number
  /** @internal */
  readonly hi: number
  /** A private field, so that a handle may be frozen. */
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

  /** What `console.log` shows: the key itself is not kept. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    return inspectAs('KeyHandle', { fingerprint: hex(this.hi) + hex(this.lo) }, options, inspect)
  }

  /** @internal */
  isOf(owner: object): boolean {
    return this.#owner === owner
  }

  /** @internal Where the key was when this handle was last used, or -1. */
  get way(): number {
    return this.#way
  }

  set way(way: number) {
    this.#way = way
  }
}

/** Keys hashed once, in one typed array: for batches. Accepted by the limiter that made them. */
export class PackedKeys {
  readonly #owner: object
  /** @internal lo, hi, lo, hi, ... */
  readonly fingerprints: Int32Array
  /** How many keys. */
  readonly length: number

  /** @internal */
  constructor(owner: object, fingerprints: Int32Array) {
    this.#owner = owner
    this.fingerprints = fingerprints
    this.length = fingerprints.length / 2
    Object.freeze(this)
  }

  /** What `console.log` shows. */
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
  if (!key.isOf(owner)) {
    const expected = 'a handle or packed keys of this very limiter'
    throw new MillraceError('ERR_MILLRACE_FOREIGN_HANDLE', option, key, expected)
  }
}

/** The fingerprints of an array of keys, all of them checked. */
export function fingerprintsOf(keys: readonly Key[], hasher: Hasher, owner: object): Int32Array {
  const { length } = keys // once: a proxy may answer otherwise the next time
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
