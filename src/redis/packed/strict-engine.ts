import type { CallLimit } from '../../engines/engine.js'
import type { KeyNames } from '../../remote/key-names.js'
import { RemoteDecision } from '../../remote/remote-decision.js'
import type { RemoteRule } from '../../remote/remote-rule.js'
import {
  type Asked,
  type Asking,
  type Changing,
  type Operation,
  type RemoteStore,
  type StoreCounters,
  takesNoMemory,
  unitsAsked,
} from '../../remote/remote-store.js'
import { changedParts, checkFault, partOf, partWith, refusingOf } from '../../remote/reply.js'
import { ADMITTED_FIELDS, isFault, REFUSED_FIELDS, Verdict } from '../../remote/reply-codes.js'
import type { CallTimes } from '../../remote/restoring/own-charges.js'
import {
  type Changed,
  type Decided,
  type LostCharges,
  type RestoredReply,
  Restoring,
} from '../../remote/restoring/restoring.js'
import { readAll } from '../../remote/take-back.js'
import type { Channel } from '../channel.js'
import { divideBySlot } from '../clients/slots.js'
import { clearNames } from '../counting/clear-names.js'
import type { Script } from '../script.js'
import { ALL_ADMITTED, OPERATION_LETTER } from '../script-codes.js'
import { type Together, TurnBatch, type Waiting } from './turn-batch.js'

/** What the arguments of a call begin with: the operation, the limits, and the time of a test. */
type Head = readonly string[]

/** Keys in one call. */
const KEYS_PER_CALL = 64

/** Writes calls of the script, and reads its replies. */
export class StrictEngine implements RemoteStore {
  readonly #owner: object
  readonly #channel: Channel
  readonly #names: KeyNames
  /** A test's time in milliseconds; undefined: that of the server. */
  readonly #time: (() => number) | undefined
  /** Undefined: that of the channel. */
  readonly #script: Script | undefined
  readonly restoring: Restoring
  #testMs = 0
  #elapsedMs = 0
  #rules: readonly RemoteRule[]
  onRecovery: () => void = () => {}
  /** By operation: what each call with the rules' own limits begins with. */
  readonly #heads = new Map<Operation, Head>()
  readonly #batch = new TurnBatch((together, waiting) => this.#askWaiting(together, waiting))

  constructor(
    owner: object,
    channel: Channel,
    rules: readonly RemoteRule[],
    names: KeyNames,
    time: (() => number) | undefined,
    maxKeys: number,
    script?: Script,
  ) {
    this.#owner = owner
    this.#channel = channel
    this.#rules = rules
    this.#names = names
    this.#time = time
    this.#script = script
    this.restoring = new Restoring(this, maxKeys)
    channel.onRecovery = () => this.onRecovery()
  }

  ready(): Promise<void> {
    return this.#channel.ready()
  }

  close(): Promise<void> {
    return this.#channel.close()
  }

  divide(asked: readonly Asked[]): number[][] {
    if (this.#channel.connection.isCluster) {
      const names = asked.map(({ key }) => this.#names.of(key)[0]!)
      return divideBySlot(names, KEYS_PER_CALL)
    }
    const calls: number[][] = []
    for (let i = 0; i < asked.length; i++) {
      if (i % KEYS_PER_CALL === 0) calls.push([])
      calls.at(-1)!.push(i)
    }
    return calls
  }

  async clearAll(): Promise<void> {
    const longestMs = Math.max(...this.#rules.map(({ windowMs }) => windowMs))
    await this.#channel.onPrimaries((send) => clearNames(send, this.#names.pattern, longestMs))
    this.restoring.forget()
  }

  get counters(): StoreCounters {
    return { restored: this.restoring.restored }
  }

  get rules(): readonly RemoteRule[] {
    return this.#rules
  }

  set rules(rules: readonly RemoteRule[]) {
    this.#rules = rules
    this.#heads.clear()
  }

  ask(op: Asking, asked: readonly Asked[], limit?: CallLimit): Promise<RemoteDecision[]> {
    const limits = this.unitLimits(limit)
    const together = { op, head: this.#headOf(op, limits), rules: this.#rules, limits, sentMs: this.nowMs() }
    if (asked.length === 1 && !this.#channel.connection.isCluster) {
      const kind = this.#time === undefined ? op : `${op}${this.#time()}`
      return this.#batch.add(kind, together, asked[0]!)
    }
    this.#batch.flush()
    return this.#askTogether(together, asked)
  }

  async change(
    op: Changing,
    key: string,
    units: readonly number[],
    more: readonly string[] = [],
    limits?: readonly (number | undefined)[],
  ): Promise<number[]> {
    const head = this.#headOf(op, limits)
    this.#batch.flush()
    const sentMs = this.nowMs()
    const args = [...units.map(String), ...more]
    const reply = await this.#call(head, [{ key, cost: 0 }], args, takesNoMemory(op))
    checkFault(reply[0]!, key)
    const parts = changedParts(units.length, reply)
    const ageMs = op === 'penalizeAgo' ? Number(more[0]) : 0
    const times = { sentMs, receivedMs: this.nowMs() }
    this.noteChanged(op, { key, units, limits, parts, receipts: more, ageMs }, times)
    return parts.map(({ result }, i) => result * (this.#rules[i]!.rule.unit ?? 1))
  }

  async usage(key: string, ms: number, index: number): Promise<number> {
    const costs = this.#rules.map(() => String(ms))
    this.#batch.flush()
    const reply = await this.#call(this.#headOf('usage'), [{ key, cost: 0 }], [...costs, String(index + 1)])
    checkFault(reply[0]!, key)
    return reply[0]! * (this.#rules[index]!.rule.unit ?? 1)
  }

  unitLimits(limit: CallLimit | undefined): readonly (number | undefined)[] | undefined {
    if (limit === undefined) return undefined
    const limits = typeof limit === 'number' ? [limit] : limit
    return limits.map((own, i) => own && own / (this.#rules[i]!.rule.unit ?? 1))
  }

  /** Decides the requests of a turn, each for itself. */
  #askWaiting(together: Together, waiting: readonly Waiting[]): void {
    for (let from = 0; from < waiting.length; from += KEYS_PER_CALL) {
      const chunk = waiting.slice(from, from + KEYS_PER_CALL)
      this.#callFor(
        together,
        chunk.map(({ asked }) => asked),
      ).then(
        (reply) => {
          const read = this.#reading(together, reply)
          for (const { asked, resolve, reject } of chunk) {
            try {
              resolve([read(asked)])
            } catch (error) {
              reject(error)
            }
          }
        },
        (error: unknown) => {
          for (const { reject } of chunk) reject(error)
        },
      )
    }
  }

  async #askTogether(together: Together, asked: readonly Asked[]): Promise<RemoteDecision[]> {
    const reply = await this.#callFor(together, asked)
    return readAll(this, asked, this.#reading(together, reply))
  }

  #callFor({ head, rules }: Together, asked: readonly Asked[]): Promise<readonly number[]> {
    const costs: string[] = []
    const [first] = asked as [Asked]
    const areAlike = asked.every(({ cost, free }) => cost === first.cost && free === first.free)
    for (const each of areAlike ? asked.slice(0, 1) : asked)
      for (const units of unitsAsked(each, rules)) costs.push(String(units))
    return this.#call(head, asked, costs)
  }

  /** Reads the decisions of a reply, one at each call. */
  #reading({ op, rules, limits, sentMs }: Together, reply: readonly number[]) {
    const times = { sentMs, receivedMs: this.nowMs() }
    const areAdmitted = reply[0] === ALL_ADMITTED
    let next = areAdmitted ? 3 : 0
    return ({ key, cost, free }: Asked): RemoteDecision => {
      if (isFault(reply[next]!)) checkFault(reply[next++]!, key)
      const parts = rules.map((rule, i) => {
        const at = next
        const limit = limits?.[i]
        const first = reply[at]!
        if (areAdmitted) {
          next += 2
          return partWith(rule, limit, Verdict.ADMITTED, first, 0, reply[1]!, reply[2]!, reply[at + 1]!)
        }
        next += first >= 0 ? ADMITTED_FIELDS : REFUSED_FIELDS
        return first >= 0
          ? partWith(rule, limit, Verdict.ADMITTED, first, 0, reply[at + 1]!, reply[at + 2]!, reply[at + 3]!)
          : partOf(rule, limit, reply, at)
      })
      const requested = { owner: this.#owner, key, cost, limits }
      const refusing = refusingOf(rules, cost, limits, parts)
      const decision = new RemoteDecision(requested, 'redis', parts, refusing)
      this.noteDecided(op, { key, cost, limits, free, parts }, times)
      return decision
    }
  }

  noteLoss(): void {
    this.#channel.noteLoss()
  }

  async sendAgain(key: string, lost: readonly LostCharges[]): Promise<RestoredReply> {
    const asked = lost.map(() => ({ key, cost: 0 }))
    const units = lost.flatMap((each) => each.units.map(String))
    const ages = lost.map(({ ageMs }) => String(ageMs))
    const sentMs = this.nowMs()
    const reply = await this.#call(this.#headOf('penalizeAgo'), asked, [...units, ...ages])
    checkFault(reply[0]!, key)
    const parts = lost.map((_, at) => changedParts(this.#rules.length, reply, at))
    return { parts, times: { sentMs, receivedMs: this.nowMs() } }
  }

  /** Own charges are noted where they can be restored. */
  protected noteDecided(op: Asking, decided: Decided, times: CallTimes): void {
    this.restoring.decided(op, decided, times)
  }

  protected noteChanged(op: Changing, changed: Changed, times: CallTimes): void {
    this.restoring.changed(op, changed, times)
  }

  /**
   * The clock of this process, which never steps back or stands still. A test's time is that of Redis: when it has
   * stepped back, time goes on here from where it was.
   */
  nowMs(): number {
    if (this.#time === undefined) return performance.now()
    const testMs = this.#time()
    this.#elapsedMs += Math.max(0, testMs - this.#testMs)
    this.#testMs = testMs
    return this.#elapsedMs
  }

  #call(
    head: Head,
    asked: readonly Asked[],
    args: readonly string[],
    frees = false,
  ): Promise<readonly number[]> {
    const names =
      asked.length === 1 ? this.#names.of(asked[0]!.key) : asked.flatMap(({ key }) => this.#names.of(key))
    return this.#channel.call(names, [...head, ...args], this.#script, frees)
  }

  #headOf(op: Operation, limits?: readonly (number | undefined)[]): Head {
    const isOwn = limits === undefined && this.#time === undefined
    const known = isOwn ? this.#heads.get(op) : undefined
    if (known !== undefined) return known
    const all = this.#rules.map(({ rule }, i) => String(limits?.[i] ?? rule.limit))
    const head = [OPERATION_LETTER[op], ...all, ...(this.#time === undefined ? [] : [String(this.#time())])]
    if (isOwn) this.#heads.set(op, head)
    return head
  }
}
