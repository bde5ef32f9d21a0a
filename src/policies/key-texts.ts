import { KeyReader } from '../memory/key-reader.js'
import { checkKeyString, type Key, type KeyHandle, type PackedKeys } from '../memory/keys.js'

/** The keys of a limiter that needs their text, too: a policy belongs to the text of a key, and of its prefixes. */
export class KeyTexts extends KeyReader {
  readonly #ofHandles = new WeakMap<KeyHandle, string>()
  readonly #ofPacked = new WeakMap<PackedKeys, readonly string[]>()

  override handle(key: string): KeyHandle {
    const handle = super.handle(key)
    this.#ofHandles.set(handle, key)
    return handle
  }

  /** @throws MillraceError `ERR_MILLRACE_INVALID_KEY`, `ERR_MILLRACE_FOREIGN_HANDLE` */
  textOf(key: Key): string {
    if (typeof key !== 'string') return this.#ofHandles.get(this.owned(key))!
    checkKeyString(key, 'key')
    return key
  }

  /** Packs keys, and returns a function for the text of each. */
  packWithTexts(keys: readonly Key[] | PackedKeys): { packed: PackedKeys; textAt: (i: number) => string } {
    const own = Array.isArray(keys) ? ([...keys] as readonly Key[]) : (keys as PackedKeys)
    const packed = this.pack(own)
    const known = this.#ofPacked.get(packed)
    const texts = known ?? (own as readonly Key[]).map((key) => this.textOf(key))
    if (known === undefined) this.#ofPacked.set(packed, texts)
    return { packed, textAt: (i) => texts[i]! }
  }
}
