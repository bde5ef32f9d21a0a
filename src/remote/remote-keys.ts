import { MillraceError } from '../core/errors.js'
import { type Inspect, inspectAs } from '../core/inspect.js'
import { checkKeyString, checkOwner, type Key, KeyHandle } from '../memory/keys.js'
import { RemoteDecision } from './remote-decision.js'

/** A handle of a limiter on Redis. It keeps its key. */
export class RemoteHandle extends KeyHandle {
  readonly #key: string

  /** @internal */
  constructor(owner: object, key: string) {
    super(owner, 0, 0)
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

/** Reads the keys of one limiter. */
export class RemoteKeys {
  readonly #owner: object

  constructor(owner: object) {
    this.#owner = owner
  }

  /** @throws MillraceError `ERR_MILLRACE_INVALID_KEY`, `ERR_MILLRACE_FOREIGN_HANDLE` */
  read(key: Key, option = 'key'): string {
    if (KeyHandle.is(key)) {
      checkOwner(key, this.#owner, option)
      return (key as RemoteHandle).key
    }
    checkKeyString(key, option)
    return key
  }

  readAll(keys: unknown): string[] {
    if (Array.isArray(keys)) return Array.from(keys, (key: Key, i) => this.read(key, `keys[${i}]`))
    throw new MillraceError('ERR_MILLRACE_INVALID_KEY', 'keys', keys, 'an array of keys')
  }

  handle(key: string): RemoteHandle {
    checkKeyString(key, 'key')
    return new RemoteHandle(this.#owner, key)
  }

  /** Whether this limiter has decided it. */
  owns(what: unknown): what is RemoteDecision {
    return RemoteDecision.is(what) && what.requested.owner === this.#owner
  }
}
