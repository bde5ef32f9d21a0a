import { invalid } from '../core/errors.js'
import { Guard, type OpenCall } from '../remote/guard.js'
import { Outage } from '../remote/outage.js'
import type { OutageWatch } from '../remote/outage-watch.js'
import type { Values } from '../values/values.js'
import type { KeyOfCall, ValuesPlace } from '../values/values-runner.js'
import { CheckedValues } from './checked-values.js'

/** Values of one store, which belongs to its owner: the limiter does not close it. */
export class OwnPlace implements ValuesPlace {
  readonly #values: Values
  readonly #guard: Guard
  readonly #unused: string

  /** @param unused a name that no key has */
  constructor(values: Values, source: string, deadlineMs: number, unused: string, outages: OutageWatch) {
    this.#values = new CheckedValues(values)
    this.#guard = new Guard({ name: `'${source}'` }, deadlineMs, outages.of(values))
    this.#unused = unused
  }

  set onRecovery(listener: () => void) {
    this.#guard.onRecovery = listener
  }

  async ready(): Promise<void> {
    try {
      await this.#guard.run(() => this.#values.read([this.#unused]))
    } catch (error) {
      throw error instanceof Outage ? error.toError() : error
    }
  }

  run<T>(_: string, act: (call: OpenCall) => Promise<T>): Promise<T> {
    return this.#guard.run(act)
  }

  use<T>(_: KeyOfCall, _call: OpenCall, act: (values: Values) => Promise<T>): Promise<T> {
    return act(this.#values)
  }

  async clearAll(): Promise<void> {
    const expected = 'clear(key), or a limiter with another prefix: a backend does not list its keys'
    throw invalid('clearAll', 'a limiter on a backend', expected)
  }

  close(): Promise<void> {
    return this.#guard.close()
  }
}
