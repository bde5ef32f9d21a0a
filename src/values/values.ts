/**
 * What a limiter needs of a store of small values. Each key has one value, of some tens of bytes in most cases.
 *
 * A promise that rejects with anything but a `MillraceError` is an outage: the option `onOutage` decides. The outcome of
 * a `swap` that rejects is unknown, and no request is sent again.
 */
export interface Values {
  /**
   * Reads values: of each key what the last `swap` has written, or undefined if there is none, or none any more.
   * @param keys names of up to some hundreds of characters
   */
  read(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]>
  /**
   * Writes a value if the key has the value that was read before, as one step of the store.
   * @param before what `read` has returned, the same object; undefined: the key must have no value
   * @param after the new value
   * @param ttlMs how long the store must keep it, whole milliseconds; `Infinity`: for ever. It may keep it longer
   * @returns whether it has written. `false`: the key has had another value, and nothing has changed
   */
  swap(key: string, before: Uint8Array | undefined, after: Uint8Array, ttlMs: number): Promise<boolean>
  /**
   * The clock of the store, in milliseconds since 1970. It is read at the same time as values, so that both can go out
   * together. Without it, each process goes by its own clock: see the option `clockSkew`.
   */
  now?(): Promise<number>
}
