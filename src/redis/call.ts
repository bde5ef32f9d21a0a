import type { MillraceError } from '../core/errors.js'
import { answerOf } from '../remote/answers.js'
import type { Breaker } from '../remote/breaker.js'
import { lateError, type Pending } from '../remote/deadlines.js'
import { isReply } from '../remote/last-error.js'
import { NotSent } from '../remote/not-sent.js'
import { Outage } from '../remote/outage.js'
import type { Handshake } from './handshake.js'
import type { Script } from './script.js'

export type Arguments = readonly (string | Buffer)[]

/** What a call tells when it is settled, and asks when it fails. */
interface CallOwner {
  noteFailure(call: Call, cause: unknown): void
  noteSettled(): void
  readonly handshake: Pick<Handshake, 'whyNot'>
}

/** How a call goes out. */
export interface Attempt {
  readonly kind: 'EVALSHA' | 'EVAL' | 'without memory'
  /** Whether a node of a Cluster has refused to run it before. */
  readonly isAgain: boolean
  /** The answer of a server whose memory is full. */
  readonly full: unknown
}
export const FIRST: Attempt = { kind: 'EVALSHA', isAgain: false, full: undefined }

/** A call of the script. It is settled once: by its reply, by a failure, or by its deadline. */
export class Call implements Pending {
  readonly script: Script
  readonly keys: readonly string[]
  readonly args: Arguments
  /** Whether it takes no more memory than before, so that it may run while the memory of the server is full. */
  readonly frees: boolean
  /** That of the node to which the call goes. */
  readonly breaker: Breaker
  readonly isProbe: boolean
  readonly #channel: CallOwner
  readonly #resolve: (reply: readonly number[]) => void
  readonly #reject: (error: unknown) => void
  isSettled = false
  isSent = false

  constructor(
    channel: CallOwner,
    script: Script,
    keys: readonly string[],
    args: Arguments,
    frees: boolean,
    breaker: Breaker,
    isProbe: boolean,
    resolve: (reply: readonly number[]) => void,
    reject: (error: unknown) => void,
  ) {
    this.#channel = channel
    this.script = script
    this.keys = keys
    this.args = args
    this.frees = frees
    this.breaker = breaker
    this.isProbe = isProbe
    this.#resolve = resolve
    this.#reject = reject
  }

  succeed(reply: readonly number[]): void {
    if (this.isSettled) return // its deadline has passed: the reply is void
    this.#settle()
    this.#resolve(reply)
  }

  refuse(error: MillraceError): void {
    if (this.isSettled) return
    this.#settle()
    this.#reject(error)
  }

  fail(error: unknown): void {
    if (this.isSettled) return
    this.#settle()
    const cause = isReply(error) ? error : (this.#channel.handshake.whyNot(this.keys[0]!) ?? error)
    this.#channel.noteFailure(this, cause)
    this.#reject(new Outage(cause, this.isSent && !isNotRun(error)))
  }

  #settle(): void {
    this.isSettled = true
    this.#channel.noteSettled()
  }

  expire(): void {
    this.fail(lateError())
  }
}

/** Whether no server has run a call: an error of one that did not go out, or an answer before the first write. */
const isNotRun = (error: unknown): boolean => {
  const answer = answerOf(error)
  return error instanceof NotSent || (answer !== undefined && !answer.mayBeRun)
}
