import { setImmediate } from '../core/real-timers.js'

/** A request that waits for the end of the turn. */
export interface Waiting<Asked, Answer> {
  readonly asked: Asked
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/** What the requests of one call have in common: requests go out together if it is the same text. */
interface Headed {
  readonly head: readonly string[]
}

/**
 * Collects the requests of one turn of the event loop, so that they go out together: one call for many keys costs
 * the client and the server far less than a call for each.
 */
export class TurnBatch<Together extends Headed, Asked extends { readonly key: string }, Answer> {
  readonly #send: (together: Together, waiting: readonly Waiting<Asked, Answer>[]) => void
  #kind: string | undefined
  #isDue = false
  /** By key: the group in which it waits. Undefined while there is one group only. */
  #groupOf: Map<string, string> | undefined
  #groups = new Map<string, { together: Together; waiting: Waiting<Asked, Answer>[] }>()

  constructor(send: (together: Together, waiting: readonly Waiting<Asked, Answer>[]) => void) {
    this.#send = send
  }

  /** @param kind requests of another kind go before this one, or after it: a peek sees the charges before it only */
  add(kind: string, together: Together, asked: Asked): Promise<Answer> {
    if (kind !== this.#kind) this.flush()
    this.#kind = kind
    return new Promise((resolve, reject) => {
      if (!this.#isDue) {
        this.#isDue = true
        setImmediate(() => {
          this.#isDue = false
          this.flush()
        })
      }
      const waiting = { asked, resolve, reject }
      const id = String(together.head)
      if (this.#isElsewhere(asked.key, id)) this.flush()
      const group = this.#groups.get(id)
      if (group === undefined) this.#groups.set(id, { together, waiting: [waiting] })
      else group.waiting.push(waiting)
    })
  }

  /** Sends what waits, before a call that comes after it. */
  flush(): void {
    if (this.#groups.size === 0) return
    const groups = this.#groups
    this.#groups = new Map()
    this.#groupOf = undefined
    for (const { together, waiting } of groups.values()) this.#send(together, waiting)
  }

  /** Whether a request for this key waits in another group: it was asked before. */
  #isElsewhere(key: string, id: string): boolean {
    if (this.#groupOf === undefined) {
      if (this.#groups.size === 0 || this.#groups.has(id)) return false
      this.#groupOf = new Map()
      for (const [other, { waiting }] of this.#groups)
        for (const { asked } of waiting) this.#groupOf.set(asked.key, other)
    }
    const other = this.#groupOf.get(key)
    this.#groupOf.set(key, id)
    return other !== undefined && other !== id
  }
}
