import { MillraceError } from '../core/errors.js'
import { checkKeyString, checkOwner, type Key, KeyHandle, PackedKeys } from '../memory/keys.js'

/** Handles and packed keys of a limiter that needs the text of a key for every decision. */
export class TextKeys {
  readonly #handles = new WeakMap<KeyHandle, string>()
  readonly #packed = new WeakMap<PackedKeys, readonly string[]>()

  handle(key: string): KeyHandle {
    checkKeyString(key, 'key')
    const handle = new KeyHandle(this, 0, 0)
    this.#handles.set(handle, key)
    return handle
  }

  /** @throws MillraceError `ERR_MILLRACE_INVALID_KEY`, `ERR_MILLRACE_FOREIGN_HANDLE` */
  textOf(key: Key, option = 'key'): string {
    if (typeof key === 'string' || !KeyHandle.is(key)) {
      checkKeyString(key, option)
      return key
    }
    checkOwner(key, this, option)
    return this.#handles.get(key)!
  }

  pack(keys: readonly Key[]): PackedKeys {
    const texts = this.textsOf(keys)
    const packed = new PackedKeys(this, new Int32Array(2 * texts.length))
    this.#packed.set(packed, texts)
    return packed
  }

  textsOf(keys: readonly Key[] | PackedKeys): readonly string[] {
    if (PackedKeys.is(keys)) {
      checkOwner(keys, this, 'keys')
      return this.#packed.get(keys)!
    }
    if (!Array.isArray(keys))
      throw new MillraceError('ERR_MILLRACE_INVALID_KEY', 'keys', keys, 'an array of keys, or packed keys')
    return Array.from(keys as readonly Key[], (key, i) => this.textOf(key, `keys[${i}]`))
  }
}
