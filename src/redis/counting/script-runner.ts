import { takesNoMemory } from '../../remote/remote-store.js'
import type { Channel } from '../channel.js'
import type { Command } from '../clients/connection.js'
import { argumentsOf, type CountingCall } from './counting-call.js'
import type { Runner } from './counting-store.js'

const KEYS_PER_CALL = 64

/** Runs each call as one call of a script. */
export class ScriptRunner implements Runner {
  readonly retries = 0
  readonly #channel: Channel

  constructor(channel: Channel) {
    this.#channel = channel
  }

  get mostKeys(): number {
    return this.#channel.connection.isCluster ? 1 : KEYS_PER_CALL
  }

  set onRecovery(listener: () => void) {
    this.#channel.onRecovery = listener
  }

  ready(): Promise<void> {
    return this.#channel.ready()
  }

  run(call: CountingCall): Promise<readonly number[]> {
    return this.#channel.call(call.names, argumentsOf(call), undefined, takesNoMemory(call.op))
  }

  noteLoss(): void {
    this.#channel.noteLoss()
  }

  onPrimaries(act: (send: (command: Command) => Promise<unknown>) => Promise<void>): Promise<void> {
    return this.#channel.onPrimaries(act)
  }

  close(): Promise<void> {
    return this.#channel.close()
  }
}
