import { MillraceError } from '../core/errors.js'
import { Hasher } from './hash.js'
import { checkKeyString, checkOwner, fingerprintsOf, type Key, KeyHandle, PackedKeys } from './keys.js'
import { HEADER } from './layout.js'
import type { Arena } from './records.js'
import { read } from './words.js'

/** Hashes keys as all limiters of a memory do. */
export const hasherOf = ({ words }: Arena): Hasher =>
  new Hasher(read(words, HEADER.SEED_0), read(words, HEADER.SEED_1))

/**
 * Computes the fingerprints of one limiter's keys. `owner` is that limiter: it accepts only its own handles.
 */
export class KeyReader {
  readonly hasher: Hasher
  readonly #owner: object

  constructor(owner: object, arena: Arena) {
    this.#owner = owner
    this.hasher = hasherOf(arena)
  }

  /** Returns the key's fingerprint. It is valid until the next key is read. */
  read(key: Key, option = 'key'): { readonly lo: number; readonly hi: number } {
    if (typeof key !== 'string') return this.owned(key, option)
    checkKeyString(key, option)
    this.hasher.hash(key)
    return this.hasher
  }

  /** Checks that a handle belongs to this limiter. */
  owned(key: KeyHandle, option = 'key'): KeyHandle {
    if (!KeyHandle.is(key)) checkKeyString(key, option)
    checkOwner(key, this.#owner, option)
    return key
  }

  handle(key: string): KeyHandle {
    checkKeyString(key, 'key')
    this.hasher.hash(key)
    return new KeyHandle(this.#owner, this.hasher.lo, this.hasher.hi)
  }

  /** Hashes keys into one typed array. Packed keys are returned as they are. */
  pack(keys: readonly Key[] | PackedKeys): PackedKeys {
    if (PackedKeys.is(keys)) {
      checkOwner(keys, this.#owner, 'keys')
      return keys
    }
    if (!Array.isArray(keys)) {
      throw new MillraceError('ERR_MILLRACE_INVALID_KEY', 'keys', keys, 'an array of keys, or packed keys')
    }
    return new PackedKeys(this.#owner, fingerprintsOf(keys, this.hasher, this.#owner))
  }
}
