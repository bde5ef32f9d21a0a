import type { OpenCall } from '../remote/guard.js'
import type { Values } from '../values/values.js'
import type { KeyOfCall, ValuesPlace } from '../values/values-runner.js'
import { clearAllError } from './memcached-store.js'
import { MemcachedValues } from './memcached-values.js'
import type { Servers } from './servers.js'

/** The values of limiters with `strict: true`. */
export class StrictPlace implements ValuesPlace {
  readonly #servers: Servers

  constructor(servers: Servers) {
    this.#servers = servers
  }

  set onRecovery(listener: () => void) {
    this.#servers.onRecovery = listener
  }

  ready(): Promise<void> {
    return this.#servers.ready()
  }

  run<T>(name: string, act: (call: OpenCall) => Promise<T>): Promise<T> {
    return this.#servers.of(name).run(({ call }) => act(call))
  }

  use<T>({ names }: KeyOfCall, _: OpenCall, act: (values: Values) => Promise<T>): Promise<T> {
    return act(new MemcachedValues(this.#servers.of(names[0]!).connection))
  }

  async clearAll(): Promise<void> {
    throw clearAllError()
  }

  close(): Promise<void> {
    return this.#servers.close()
  }
}
