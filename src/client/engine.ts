import { randomUUID } from 'node:crypto'
import { MillraceError } from '../core/errors.js'
import { setTimeout } from '../core/real-timers.js'
import { answerOf } from '../remote/answers.js'
import { Guard, type OpenCall } from '../remote/guard.js'
import { Outage } from '../remote/outage.js'
import type { OutageWatch } from '../remote/outage-watch.js'
import { TurnBatch, type Waiting } from '../remote/turn-batch.js'
import { type ClientTls, Lost, type Sending, Transport } from './transport.js'
import {
  errorOf,
  foreign,
  readDecision,
  readJson,
  type ServiceDecision,
  unavailable,
  type WireCheck,
} from './wire.js'

/** An engine of the service. Its name decides which keys it has. */
export interface NamedEngine {
  readonly name: string
  readonly url: URL
}

/** How engines are reached. */
export interface EngineSettings {
  readonly deadlineMs: number
  readonly outages: OutageWatch
  readonly token: (() => string) | undefined
  readonly tls: ClientTls
}

/** Requests that decide. */
type Deciding = 'check' | 'peek'

/** What the requests of one call have in common. */
interface Together {
  readonly op: Deciding
  readonly head: readonly string[]
}

/** A request of the service's interface. */
export interface Call {
  readonly method?: 'GET'
  readonly path: string
  readonly body?: object
  /** Whether it changes no counts: then it may be sent again. */
  readonly isRead?: boolean
  /** Whether the service can tell a request that is sent again by its `Idempotency-Key`. */
  readonly takesKey?: boolean
}

/** The most keys of one request, and the most bytes of their JSON: an engine takes a mebibyte by default. */
const MOST_KEYS = 1_024
const MOST_BYTES = 1_000_000
/** Of a key: its other fields, and each unit of its text as it may be escaped. */
const BYTES_OF_FIELDS = 200
const BYTES_OF_UNIT = 6
const MOST_TRIES = 3
/** Before a connection that was refused is tried again: so much longer each time. */
const PAUSE_MS = 5
const TOGETHER: Readonly<Record<Deciding, Together>> = {
  check: { op: 'check', head: [] },
  peek: { op: 'peek', head: [] },
}

/** One engine of the service. A call that has no answer by the deadline rejects with an `Outage`. */
export class Engine {
  readonly name: string
  /** Whether requests that charge have a key by which the service knows one that is sent again. */
  sendsKeys = false
  readonly #guard: Guard
  readonly #transport: Transport
  readonly #token: (() => string) | undefined
  readonly #batch = new TurnBatch<Together, WireCheck, ServiceDecision>(({ op }, waiting) => {
    for (const together of dividedBySize(waiting)) this.#ask(op, together)
  })
  readonly #keys = randomUUID()
  #sent = 0

  constructor({ name, url }: NamedEngine, { deadlineMs, outages, token, tls }: EngineSettings) {
    this.name = name
    this.#token = token
    this.#transport = new Transport(url, tls)
    const server = { name: `the engine ${name}`, isAnswer: hasChargedNothing }
    this.#guard = new Guard(server, deadlineMs, outages.of(this), name)
  }

  set onRecovery(listener: () => void) {
    this.#guard.onRecovery = listener
  }

  /** Whether it has not answered, so that no requests are sent to it for a moment. */
  get isDown(): boolean {
    return this.#guard.isDown
  }

  /** Decides one key, together with the others of this turn. */
  decide(op: Deciding, check: WireCheck): Promise<ServiceDecision> {
    return this.#batch.add(op, TOGETHER[op], check)
  }

  /**
   * Makes a request.
   * @param read reads the JSON of the answer, and throws if it is none
   * @throws Outage (rejects); MillraceError if the service refuses what was sent
   */
  call<T>(call: Call, read: (json: unknown) => T): Promise<T> {
    this.#batch.flush()
    return this.#guard.run(async (open) => read(await this.#exchange(open, call)))
  }

  /** Waits for the pending requests, which the deadline bounds. */
  async close(): Promise<void> {
    this.#batch.flush()
    await this.#guard.close()
    this.#transport.close()
  }

  #ask(op: Deciding, waiting: readonly Waiting<WireCheck, ServiceDecision>[]): void {
    const checks = waiting.map(({ asked }) => asked)
    const token = op === 'check' ? { token: true } : {}
    const body = checks.length === 1 ? { ...checks[0], ...token } : { checks, ...token }
    const call = { path: `/v1/${op}`, body, isRead: op === 'peek', takesKey: op === 'check' }
    this.#guard
      .run(async (open) => decisionsIn(await this.#exchange(open, call), checks))
      .then(
        (decisions) => {
          for (const [i, { resolve, reject }] of waiting.entries()) {
            const decision = decisions[i]!
            if (decision instanceof Error || decision instanceof Outage) reject(decision)
            else resolve(decision)
          }
        },
        (error: unknown) => {
          for (const { reject } of waiting) reject(error)
        },
      )
  }

  /** Sends a request, and again where that is safe: what was not sent, changes nothing, or has a key. */
  async #exchange(open: OpenCall, call: Call): Promise<unknown> {
    const { method = 'POST', path, body, isRead = false, takesKey = false } = call
    const hasKey = takesKey && this.sendsKeys
    const sending: Sending = {
      method,
      path,
      text: body && JSON.stringify(body),
      headers: this.#headers(body, hasKey),
    }
    let isOneLost = false
    for (let tries = 1; ; tries++) {
      const sent = this.#transport.send(sending, () => {
        open.isSent ||= !isRead
      })
      open.expired.catch(() => sent.abort())
      try {
        const answer = await sent.answer
        const json = readJson(answer)
        if (answer.status === 200) return json
        throw errorOf({ ...Object(json), status: answer.status }, body ?? {})
      } catch (error) {
        if (!(error instanceof Lost)) {
          // What it says of this try is not known of the one that was lost.
          if (isOneLost && hasChargedNothing(error)) throw unavailable((error as Error).message)
          throw error
        }
        const { cause, wasSent } = error
        isOneLost ||= wasSent && !isRead
        const isSafe = !wasSent || isRead || hasKey
        if (!isSafe || tries === MOST_TRIES || open.isSettled) throw cause
        if (!wasSent) await pause(tries * PAUSE_MS)
      }
    }
  }

  #headers(body: object | undefined, hasKey: boolean): Record<string, string> {
    const token = this.#token?.()
    return {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(hasKey && { 'idempotency-key': `${this.#keys}-${++this.#sent}` }),
    }
  }
}

function dividedBySize<T extends { readonly asked: WireCheck }>(waiting: readonly T[]): T[][] {
  const requests: T[][] = []
  let bytes = 0
  for (const one of waiting) {
    const { key, limiter = '' } = one.asked
    const own = BYTES_OF_FIELDS + BYTES_OF_UNIT * (key.length + limiter.length)
    bytes += own
    const present = requests.at(-1)
    if (present !== undefined && present.length < MOST_KEYS && bytes <= MOST_BYTES) present.push(one)
    else {
      requests.push([one])
      bytes = own
    }
  }
  return requests
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Whether an error is an answer that says so. */
function hasChargedNothing(error: unknown): boolean {
  const answer = answerOf(error)
  return answer !== undefined && answer.mayBeRun !== true
}

/** The decisions of an answer, or why there is none, in the order of the keys. */
function decisionsIn(json: unknown, checks: readonly WireCheck[]): (ServiceDecision | Error | Outage)[] {
  if (checks.length === 1) return [readDecision(json)]
  const { decisions } = Object(json) as { decisions?: unknown }
  if (!Array.isArray(decisions) || decisions.length !== checks.length)
    throw foreign('an answer without a decision for each key')
  return decisions.map((each: unknown, i) => {
    const { error } = Object(each) as { error?: object }
    return error === undefined ? readDecision(each) : ofOneKey(errorOf(error, checks[i]!))
  })
}

/** What is no decision about one key of several. */
const ofOneKey = (error: Error): Error | Outage =>
  error instanceof MillraceError ? error : new Outage(error, !hasChargedNothing(error))
