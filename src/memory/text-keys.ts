import { MillraceError } from '../core/errors.js'
import { type Inspect, inspectAs } from '../core/inspect.js'
import type { Hasher } from './hash.js'
import { checkKeyString, checkOwner, fingerprintsOf, type Key, KeyHandle, PackedKeys } from './keys.js'

/** A handle that keeps its key, of a limiter that needs the text. */
export class TextHandle extends KeyHandle {
  readonly #key: string

  /** @internal */
  constructor(owner: object, key: string, lo = 0, hi = 0) {
    super(owner, lo, hi)
    this.#key = key
  }

  /** @internal */
  get key(): string {
    return this.#key
  }

  /** The output of `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    return inspectAs('KeyHandle', { key: this.#key }, options, inspect)
  }
}

/** Reads the texts of one limiter's keys. With `hasher`, its handles and packed keys have fingerprints, too. */
export class TextKeys {
  readonly #owner: object
  readonly #hasher: Hasher | undefined
  readonly #packed = new WeakMap<PackedKeys, readonly string[]>()

  constructor(owner: object, hasher?: Hasher) {
    this.#owner = owner
    this.#hasher = hasher
  }

  /** @throws MillraceError `ERR_MILLRACE_INVALID_KEY`, `ERR_MILLRACE_FOREIGN_HANDLE` */
  read(key: Key, option = 'key'): string {
    if (KeyHandle.is(key)) {
      checkOwner(key, this.#owner, option)
      return (key as TextHandle).key
    }
    checkKeyString(key, option)
    return key
  }

  readAll(keys: unknown, expected = 'an array of keys'): readonly string[] {
    if (Array.isArray(keys)) return Array.from(keys, (key: Key, i) => this.read(key, `keys[${i}]`))
    throw new MillraceError('ERR_MILLRACE_INVALID_KEY', 'keys', keys, expected)
  }

  handle(key: string): TextHandle {
    checkKeyString(key, 'key')
    this.#hasher?.hash(key)
    return new TextHandle(this.#owner, key, this.#hasher?.lo, this.#hasher?.hi)
  }

  /** Packs an array of keys. Packed keys are returned as they are. */
  pack(keys: readonly Key[] | PackedKeys): {
    readonly packed: PackedKeys
    readonly texts: readonly string[]
  } {
    if (PackedKeys.is(keys)) {
      checkOwner(keys, this.#owner, 'keys')
      return { packed: keys, texts: this.#packed.get(keys)! }
    }
    const texts = this.readAll(keys, 'an array of keys, or packed keys')
    const hasher = this.#hasher
    const fingerprints = hasher
      ? fingerprintsOf(texts, hasher, this.#owner)
      : new Int32Array(2 * texts.length)
    const packed = new PackedKeys(this.#owner, fingerprints)
    this.#packed.set(packed, texts)
    return { packed, texts }
  }
}
