// A store of texts in memory, which can be made to fail: the shards of tests.
import { DocumentStore, type Listed, type RawDocument } from '#millrace/config/document-store.js'
import { documentIn, type PolicyDocument } from '#millrace/config/policy.js'
import { countKeys } from '#millrace/config/policy-keys.js'
import { byUtf8 } from '#millrace/config/utf8-order.js'

export class TextStore extends DocumentStore {
  readonly kind = 'text'
  readonly watchDelayMs = 0
  readonly texts = new Map<string, string>()
  isDown = false
  /** The keys of each read. */
  readonly asked: (readonly string[])[] = []
  /** Called before each read. */
  onRead: () => Promise<void> | void = () => {}
  /** Called in the middle of each replacement, with its key. */
  onReplace: (key: string) => Promise<void> | void = () => {}

  #answer(): void {
    if (this.isDown) throw new Error('the connection is lost')
  }

  protected async read(keys: readonly string[]): Promise<readonly (RawDocument | undefined)[]> {
    await this.onRead()
    this.#answer()
    this.asked.push(keys)
    return keys.map((key) => {
      const text = this.texts.get(key)
      return text === undefined ? undefined : { document: documentIn(text), token: text }
    })
  }

  protected async replace(
    key: string,
    expected: RawDocument | undefined,
    next: PolicyDocument | undefined,
  ): Promise<boolean> {
    await this.onReplace(key)
    this.#answer()
    if (this.texts.get(key) !== expected?.token) return false
    if (next === undefined) this.texts.delete(key)
    else this.texts.set(key, JSON.stringify(next))
    this.tell({ keys: [key] })
    return true
  }

  protected async page(prefix: string, after: string | undefined, limit: number): Promise<readonly Listed[]> {
    this.#answer()
    const keys = [...this.texts.keys()].filter(
      (key) => key.startsWith(prefix) && (after === undefined || byUtf8(key, after) > 0),
    )
    return keys
      .sort(byUtf8)
      .slice(0, limit)
      .map((key) => ({ key, document: documentIn(this.texts.get(key)!), token: undefined }))
  }

  protected async countDocuments(prefix: string): Promise<number> {
    this.#answer()
    return countKeys(this.texts.keys(), prefix)
  }

  protected startWatch(): void {}

  protected stopWatch(): void {}

  protected async end(): Promise<void> {}
}
