import type { CountingCall } from '../../remote/counting-call.js'
import type { Runner } from '../../remote/counting-store.js'
import { takesNoMemory } from '../../remote/remote-store.js'
import type { Channel } from '../channel.js'
import { argumentsOf } from './script-arguments.js'

/** The most keys in one call. */
export const KEYS_PER_CALL = 64

/** Runs each call as one call of a script. */
export class ScriptRunner implements Runner {
  readonly retries = 0
  readonly mostKeys: number
  readonly #channel: Channel
  readonly #clear: () => Promise<void>

  /**
   * @param clear forgets all keys
   * @param mostKeys of a call. In a Cluster, a call has the keys of one slot
   */
  constructor(
    channel: Channel,
    clear: () => Promise<void>,
    mostKeys = channel.connection.isCluster ? 1 : KEYS_PER_CALL,
  ) {
    this.#channel = channel
    this.mostKeys = mostKeys
    this.#clear = clear
  }

  set onRecovery(listener: () => void) {
    this.#channel.onRecovery = listener
  }

  ready(): Promise<void> {
    return this.#channel.handshake.ready()
  }

  run(call: CountingCall): Promise<readonly number[]> {
    return this.#channel.call(call.names, argumentsOf(call), undefined, takesNoMemory(call.op))
  }

  noteLoss(): void {
    this.#channel.noteLoss()
  }

  clearAll(): Promise<void> {
    return this.#clear()
  }

  close(): Promise<void> {
    return this.#channel.close()
  }
}
