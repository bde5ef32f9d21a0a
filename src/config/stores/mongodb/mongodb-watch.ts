// Tells the changes of a store on MongoDB, and goes on after each failure.
import type { ConfigChange } from '../../config-store.js'
import { storeError } from '../../document-store.js'
import { LogSource } from './mongodb-log.js'
import type { MongoServer } from './mongodb-server.js'
import { type ChangeSource, pause } from './mongodb-source.js'
import { StreamSource } from './mongodb-stream.js'

const RETRY_MS = 200
const ANY: ConfigChange = {}

/** A watch from its first listener to its last. */
export class MongoWatch {
  readonly #server: MongoServer
  readonly #pollMs: number
  readonly #tell: (change: ConfigChange) => void
  #source: ChangeSource | undefined
  #isEnded = false

  constructor(server: MongoServer, pollMs: number, tell: (change: ConfigChange) => void) {
    this.#server = server
    this.#pollMs = pollMs
    this.#tell = tell
    void this.#run()
  }

  async #run(): Promise<void> {
    let isDown = false
    while (!this.#isEnded) {
      try {
        await this.#open()
        isDown = false
        this.say(ANY) // there may have been changes until now
        for (;;) this.say(await this.#source!.next())
      } catch (error) {
        if (this.#isEnded) return
        if (!isDown) this.say({ error: storeError('mongodb', error) })
        isDown = true
        void this.#source?.end()
        await pause(RETRY_MS)
      }
    }
  }

  async #open(): Promise<void> {
    const { isReplicated } = await this.#server.collections()
    if (this.#isEnded) return
    this.#source = isReplicated ? new StreamSource(this.#server) : new LogSource(this.#server, this.#pollMs)
    await this.#source.open()
  }

  /** Tells a change. */
  say(change: ConfigChange | undefined): void {
    if (this.#isEnded) throw new Error('the watch has ended')
    if (change === undefined) return
    try {
      this.#tell(change)
    } catch (error) {
      // A listener's own error goes where those of events go. The watch goes on.
      process.nextTick(() => {
        throw error
      })
    }
  }

  /** Tells nothing more. Resolves when the server has been told so, or does not answer. Never rejects. */
  async end(): Promise<void> {
    this.#isEnded = true
    await this.#source?.end()
  }
}
