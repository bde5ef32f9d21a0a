import { KeyReader } from '../memory/key-reader.js'
import type { Key, PackedKeys } from '../memory/keys.js'
import type { Arena } from '../memory/records.js'
import { type TextHandle, TextKeys } from '../memory/text-keys.js'

/** The keys of a limiter that needs their text, too: a policy belongs to the text of a key, and of its prefixes. */
export class KeyTexts extends KeyReader {
  readonly #texts: TextKeys

  constructor(owner: object, arena: Arena) {
    super(owner, arena)
    this.#texts = new TextKeys(owner, this.hasher)
  }

  override handle(key: string): TextHandle {
    return this.#texts.handle(key)
  }

  /** @throws MillraceError `ERR_MILLRACE_INVALID_KEY`, `ERR_MILLRACE_FOREIGN_HANDLE` */
  textOf(key: Key): string {
    return this.#texts.read(key)
  }

  /** Packs keys, and returns the text of each. */
  packWithTexts(keys: readonly Key[] | PackedKeys): ReturnType<TextKeys['pack']> {
    return this.#texts.pack(keys)
  }
}
