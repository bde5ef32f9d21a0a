import { KEY_FAULT } from '../remote/reply-codes.js'
import { ValueFault } from '../values/saved-count.js'
import type { Values } from '../values/values.js'
import { expiryAfter } from './commands.js'
import type { Connection } from './connection.js'

/**
 * Values on one server, as base64. The client package drops the number that `gets` replies, so the number is read by `mg`
 * first, and then the value, in one turn: if the value changes in between, the number is that of an older one, and `cas`
 * with it does nothing.
 */
export class MemcachedValues implements Values {
  readonly #connection: Connection
  /** By the value that was read. */
  readonly #numbers = new WeakMap<Uint8Array, string>()

  constructor(connection: Connection) {
    this.#connection = connection
  }

  async read(names: readonly string[]): Promise<(Uint8Array | undefined)[]> {
    return Promise.all(names.map((name) => this.#read(name)))
  }

  async #read(name: string): Promise<Uint8Array | undefined> {
    const [head, values] = await Promise.all([
      this.#connection.send(`mg ${name} c`),
      this.#connection.send(`get ${name}`, { isMultiline: true }),
    ])
    const [text] = (values as string[] | undefined) ?? []
    if (text === undefined) return undefined
    if (!/^[A-Za-z0-9+/]+=*$/.test(text)) throw new ValueFault(KEY_FAULT.VERSION)
    const value = new Uint8Array(Buffer.from(text, 'base64'))
    const number = /^HD c(\d+)$/.exec(String(head))?.[1]
    if (number !== undefined) this.#numbers.set(value, number)
    return value
  }

  async swap(
    name: string,
    before: Uint8Array | undefined,
    after: Uint8Array,
    ttlMs: number,
  ): Promise<boolean> {
    const number = before && this.#numbers.get(before)
    if (before !== undefined && number === undefined) return false // it was written between the two reads
    const text = Buffer.from(after).toString('base64')
    const [command, unique] = number === undefined ? ['add', ''] : ['cas', ` ${number}`]
    const reply = await this.#connection.send(
      `${command} ${name} 0 ${expiryAfter(ttlMs)} ${text.length}${unique}\r\n${text}`,
    )
    return reply === 'STORED'
  }
}
