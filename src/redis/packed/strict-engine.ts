import type { CallLimit } from '../../engines/engine.js'
import { type CountingPlan, CountingStore } from '../../remote/counting-store.js'
import { RemoteDecision } from '../../remote/remote-decision.js'
import type { RemoteRule } from '../../remote/remote-rule.js'
import {
  type Asked,
  type Asking,
  type Operation,
  takesNoMemory,
  unitsAsked,
} from '../../remote/remote-store.js'
import { checkFault, partOf, partWith, refusingOf } from '../../remote/reply.js'
import { ADMITTED_FIELDS, isFault, REFUSED_FIELDS, Verdict } from '../../remote/reply-codes.js'
import { readAll } from '../../remote/take-back.js'
import { TurnBatch, type Waiting } from '../../remote/turn-batch.js'
import type { Channel } from '../channel.js'
import { divideBySlot } from '../clients/slots.js'
import { KEYS_PER_CALL, ScriptRunner } from '../counting/script-runner.js'
import type { Script } from '../script.js'
import { ALL_ADMITTED, OPERATION_LETTER } from '../script-codes.js'
import { boundsOf } from './calendar-bounds.js'

/** What the arguments of a call begin with: the operation, the limits, and the time of a test. */
type Head = readonly string[]

/** The limits of a call, in units. */
type Limits = readonly (number | undefined)[]

/** Requests that one call of the script can decide. */
interface Together {
  readonly op: Asking
  /** The operation and the limits as the script gets them. */
  readonly head: Head
  readonly rules: readonly RemoteRule[]
  readonly limits: Limits | undefined
  /** When the first of them was asked. */
  readonly sentMs: number
}

/** Windows and buckets as one string a key. Requests of a turn go out together. */
export class StrictEngine extends CountingStore {
  readonly #channel: Channel
  /** Undefined: that of the channel. */
  readonly #script: Script | undefined
  #testMs = 0
  #elapsedMs = 0
  /** By operation: what each call with the rules' own limits begins with. */
  readonly #heads = new Map<Operation, Head>()
  #headRules = this.rules
  readonly #batch = new TurnBatch<Together, Asked, RemoteDecision[]>((together, waiting) =>
    this.#askWaiting(together, waiting),
  )

  constructor(plan: CountingPlan, channel: Channel, clear: () => Promise<void>, script?: Script) {
    super(plan, new ScriptRunner(channel, clear, KEYS_PER_CALL))
    this.#channel = channel
    this.#script = script
  }

  override divide(asked: readonly Asked[]): number[][] {
    if (!this.#channel.connection.isCluster) return super.divide(asked)
    const names = asked.map(({ key }) => this.plan.names.of(key)[0]!)
    return divideBySlot(names, KEYS_PER_CALL)
  }

  override ask(op: Asking, asked: readonly Asked[], limit?: CallLimit): Promise<RemoteDecision[]> {
    const limits = this.unitLimits(limit)
    const together = { op, head: this.#headOf(op, limits), rules: this.rules, limits, sentMs: this.nowMs() }
    if (asked.length === 1 && !this.#channel.connection.isCluster) {
      const timeMs = this.plan.time()
      return this.#batch.add(timeMs === 0 ? op : `${op}${timeMs}`, together, asked[0]!)
    }
    this.#batch.flush()
    return this.#askTogether(together, asked)
  }

  /** Decides the requests of a turn, each for itself. */
  #askWaiting(together: Together, waiting: readonly Waiting<Asked, RemoteDecision[]>[]): void {
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
    const areAlike = asked.every(
      ({ cost, costs, free }) => cost === first.cost && costs === first.costs && free === first.free,
    )
    for (const each of areAlike ? asked.slice(0, 1) : asked)
      for (const units of unitsAsked(each, rules)) costs.push(String(units))
    return this.#send(head, asked, costs)
  }

  /** Reads the decisions of a reply, one at each call. */
  #reading({ op, rules, limits, sentMs }: Together, reply: readonly number[]) {
    const times = { sentMs, receivedMs: this.nowMs() }
    const areAdmitted = reply[0] === ALL_ADMITTED
    let next = areAdmitted ? 3 : 0
    return ({ key, cost, costs, free }: Asked): RemoteDecision => {
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
      const requested = { owner: this.plan.owner, key, cost, limits }
      const refusing = refusingOf(rules, cost, limits, parts)
      const decision = new RemoteDecision(requested, 'redis', parts, refusing)
      this.noteDecided(op, { key, cost, costs, limits, free, parts }, times)
      return decision
    }
  }

  /**
   * The clock of this process, which never steps back or stands still. A test's time is that of Redis: when it has
   * stepped back, time goes on here from where it was.
   */
  override nowMs(): number {
    const testMs = this.plan.time()
    if (testMs === 0) return performance.now()
    this.#elapsedMs += Math.max(0, testMs - this.#testMs)
    this.#testMs = testMs
    return this.#elapsedMs
  }

  protected override run(
    op: Operation,
    asked: readonly Pick<Asked, 'key'>[],
    costs: readonly number[],
    more: readonly string[],
    limits?: Limits,
  ): Promise<readonly number[]> {
    this.#batch.flush()
    return this.#send(this.#headOf(op, limits), asked, [...costs.map(String), ...more], takesNoMemory(op))
  }

  #send(
    head: Head,
    asked: readonly Pick<Asked, 'key'>[],
    args: readonly string[],
    frees = false,
  ): Promise<readonly number[]> {
    const { names } = this.plan
    const all = asked.length === 1 ? names.of(asked[0]!.key) : asked.flatMap(({ key }) => names.of(key))
    return this.#channel.call(all, [...head, ...args], this.#script, frees)
  }

  #headOf(op: Operation, limits?: Limits): Head {
    if (this.#headRules !== this.rules) this.#heads.clear()
    this.#headRules = this.rules
    const timeMs = this.plan.time()
    const bounds = boundsOf(this.rules, timeMs === 0 ? Date.now() : timeMs)
    const isOwn = limits === undefined && timeMs === 0 && bounds.length === 0
    const known = isOwn ? this.#heads.get(op) : undefined
    if (known !== undefined) return known
    const all = this.rules.map(({ rule }, i) => String(limits?.[i] ?? rule.limit))
    const head = [OPERATION_LETTER[op], ...all, ...(timeMs === 0 ? [] : [String(timeMs)]), ...bounds]
    if (isOwn) this.#heads.set(op, head)
    return head
  }
}
