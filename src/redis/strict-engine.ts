import { MillraceError } from '../core/errors.js'
import type { CallLimit } from '../engines/engine.js'
import type { Channel } from './channel.js'
import { clearNames } from './clear-names.js'
import type { KeyNames } from './key-names.js'
import { Outage } from './outage.js'
import { RemoteDecision, type RemotePart } from './remote-decision.js'
import { type RemoteRule, recordsOf } from './remote-rule.js'
import type { Asked, Asking, Changing, RemoteStore, StoreCounters } from './remote-store.js'
import { type LostCharges, Restoring } from './restoring.js'
import { divideBySlot } from './slots.js'
import { HEAD_BYTES, KEY_FAULT, REPLY_FIELDS, Verdict } from './strict-script.js'

type Operation = Asking | Changing | 'w'

/** Keys in one call. */
const KEYS_PER_CALL = 64

/** Writes calls of the script, and reads its replies. */
export class StrictEngine implements RemoteStore {
  readonly #owner: object
  readonly #channel: Channel
  readonly #names: KeyNames
  /** A test's time in milliseconds; 0: that of the server. */
  readonly #time: () => number
  readonly #restoring: Restoring
  readonly #counters = { restored: 0 }
  #latestMs = 0
  #rules: readonly RemoteRule[]
  onRecovery: () => void = () => {}
  #records: Buffer
  /** By operation: what each call with the rules' own limits begins with. */
  readonly #heads = new Map<Operation, Buffer>()

  constructor(
    owner: object,
    channel: Channel,
    rules: readonly RemoteRule[],
    names: KeyNames,
    time: () => number,
    maxKeys: number,
  ) {
    this.#owner = owner
    this.#channel = channel
    this.#rules = rules
    this.#records = recordsOf(rules)
    this.#names = names
    this.#time = time
    this.#restoring = new Restoring(maxKeys)
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
    this.#restoring.forget()
  }

  get counters(): StoreCounters {
    return this.#counters
  }

  get rules(): readonly RemoteRule[] {
    return this.#rules
  }

  set rules(rules: readonly RemoteRule[]) {
    this.#rules = rules
    this.#records = recordsOf(rules)
    this.#heads.clear()
  }

  async ask(op: Asking, asked: readonly Asked[], limit?: CallLimit): Promise<RemoteDecision[]> {
    const rules = this.#rules
    const costs = asked.flatMap(({ cost }) => this.#costs(cost))
    const limits = this.unitLimits(limit)
    const sentMs = this.#nowMs()
    const reply = await this.#call(op, asked, limits && recordsOf(rules, limits), costs)
    const times = { sentMs, receivedMs: this.#nowMs() }
    const decisions: RemoteDecision[] = []
    let at = 0
    for (const { key, cost } of asked) {
      checkFault(reply[at]!, key)
      const requested = { owner: this.#owner, key, cost, limits }
      const parts = rules.map((rule, i) => partOf(rule, limits?.[i], reply, at + REPLY_FIELDS * i))
      const above = rules.findIndex(({ rule }, i) =>
        isAbove(rule, cost, limits?.[i] ?? rule.limit, parts[i]!),
      )
      const refusing = above >= 0 ? above : parts.findIndex(({ allowed }) => !allowed)
      const decision = new RemoteDecision(requested, 'redis', parts, refusing)
      decisions.push(decision)
      const lost = this.#restoring.observe(rules, decision, times)
      if (lost !== undefined) void this.#restore(key, lost)
      at += REPLY_FIELDS * rules.length
    }
    return decisions
  }

  async change(
    op: Changing,
    key: string,
    units: readonly number[],
    more: readonly string[] = [],
    limits?: readonly (number | undefined)[],
  ): Promise<number[]> {
    const records = limits && recordsOf(this.#rules, limits)
    const reply = await this.#call(op, [{ key, cost: 0 }], records, units.map(String), more)
    checkFault(reply[0]!, key)
    if (op === 'g') this.#restoring.givenBack(key, reply)
    else if (op === 'r' || op === 'x') this.#restoring.forget(key)
    return reply.map((amount, i) => amount * (this.#rules[i]!.rule.unit ?? 1))
  }

  async usage(key: string, ms: number, index: number): Promise<number> {
    const costs = this.#rules.map(() => String(ms))
    const reply = await this.#call('w', [{ key, cost: 0 }], undefined, costs, [String(index + 1)])
    checkFault(reply[0]!, key)
    return reply[0]! * (this.#rules[index]!.rule.unit ?? 1)
  }

  unitLimits(limit: CallLimit | undefined): readonly (number | undefined)[] | undefined {
    if (limit === undefined) return undefined
    const limits = typeof limit === 'number' ? [limit] : limit
    return limits.map((own, i) => own && own / (this.#rules[i]!.rule.unit ?? 1))
  }

  /** Sends charges again that the server has lost. */
  async #restore(key: string, lost: readonly LostCharges[]): Promise<void> {
    const asked = lost.map(() => ({ key, cost: 0 }))
    const units = lost.flatMap((each) => each.units.map(String))
    const ages = lost.map(({ ageMs }) => String(ageMs))
    try {
      await this.#call('a', asked, undefined, units, ages)
      this.#counters.restored++
    } catch (error) {
      // They are sent once: another outage may have lost the reply. Other errors show at the key's next decision.
      if (!(error instanceof Outage || error instanceof MillraceError)) throw error
    }
  }

  /** The clock of this process, or the latest time of the test. */
  #nowMs(): number {
    this.#latestMs = Math.max(this.#latestMs, this.#time() || performance.now())
    return this.#latestMs
  }

  #costs(cost: number): string[] {
    return this.#rules.map(({ rule }) => String(rule.unit === undefined ? cost : Math.ceil(cost / rule.unit)))
  }

  #call(
    op: Operation,
    asked: readonly Asked[],
    records: Buffer | undefined,
    costs: readonly string[],
    more: readonly string[] = [],
  ): Promise<readonly number[]> {
    const names =
      asked.length === 1 ? this.#names.of(asked[0]!.key) : asked.flatMap(({ key }) => this.#names.of(key))
    return this.#channel.call(names, [this.#headOf(op, records), ...costs, ...more])
  }

  #headOf(op: Operation, records: Buffer | undefined): Buffer {
    const timeMs = this.#time()
    if (records !== undefined || timeMs !== 0) return headOf(op, timeMs, records ?? this.#records)
    let head = this.#heads.get(op)
    if (head === undefined) {
      head = headOf(op, 0, this.#records)
      this.#heads.set(op, head)
    }
    return head
  }
}

function headOf(op: Operation, timeMs: number, records: Buffer): Buffer {
  const head = Buffer.alloc(HEAD_BYTES + records.length, op)
  head.writeUIntBE(timeMs, 1, HEAD_BYTES - 1)
  records.copy(head, HEAD_BYTES)
  return head
}

/** Whether this rule can never admit the cost. */
const isAbove = (rule: RemoteRule['rule'], cost: number, limit: number, part: RemotePart): boolean =>
  cost > 1 && !part.allowed && (rule.unit === undefined ? cost : Math.ceil(cost / rule.unit)) > limit

const time = (ms: number): number => (ms < 0 ? Number.POSITIVE_INFINITY : ms)

function partOf(
  { rule }: RemoteRule,
  limit: number | undefined,
  reply: readonly number[],
  at: number,
): RemotePart {
  const unit = rule.unit ?? 1
  const verdict = reply[at]!
  const retryAfterMs = time(reply[at + 2]!)
  const mark = reply[at + 4]!
  const birth = reply[at + 5]!
  return {
    rule: rule.name,
    allowed: verdict !== Verdict.REFUSED,
    limit: (limit ?? rule.limit) * unit,
    remaining: reply[at + 1]! * unit,
    retryAfterMs: verdict === Verdict.REFUSED ? retryAfterMs : 0,
    resetMs: time(reply[at + 3]!),
    receipt: mark < 0 ? undefined : [mark, birth],
    birth,
    ...(rule.shadow && {
      shadow: {
        allowed: verdict !== Verdict.SHADOWED,
        retryAfterMs: verdict === Verdict.SHADOWED ? retryAfterMs : 0,
      },
    }),
  }
}

const FAULTS: Readonly<Record<number, readonly [got: string, expected: string]>> = {
  [KEY_FAULT.VERSION]: ['a value of another version', 'a value of version 1'],
  [KEY_FAULT.SHAPE]: [
    'a value with another window or algorithm',
    'a prefix of its own for each set of rules',
  ],
  [KEY_FAULT.CUT]: ['a damaged value', 'a value that only limiters have written'],
  [KEY_FAULT.TYPE]: ['a value of another type', 'a prefix that nothing else uses'],
}

function checkFault(first: number, key: string): void {
  if (first >= 0) return
  const [got, expected] = FAULTS[first]!
  throw new MillraceError('ERR_MILLRACE_REDIS_VALUE', `the value of '${key.slice(0, 64)}'`, got, expected)
}
