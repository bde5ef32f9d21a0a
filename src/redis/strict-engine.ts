import { MillraceError } from '../core/errors.js'
import type { CallLimit } from '../engines/engine.js'
import type { Channel } from './channel.js'
import { RemoteDecision, type RemotePart } from './remote-decision.js'
import { type RemoteRule, recordsOf } from './remote-rule.js'
import { HEAD_BYTES, KEY_FAULT, REPLY_FIELDS, Verdict } from './strict-script.js'

/** Operations that decide. */
export type Asking = 'c' | 't' | 'p'
/** Operations that change a key, and answer by one number for each rule. */
export type Changing = 'n' | 'a' | 'r' | 'g' | 'b' | 'u' | 'x'
type Operation = Asking | Changing | 'w'

/** One key of a call. */
export interface Asked {
  readonly key: string
  /** Of the client, not in units. */
  readonly cost: number
}

/** Writes calls of the script, and reads its replies. */
export class StrictEngine {
  readonly #owner: object
  readonly #channel: Channel
  readonly #namesOf: (key: string) => string[]
  /** A test's time in milliseconds; 0: that of the server. */
  readonly #time: () => number
  #rules: readonly RemoteRule[]
  #records: Buffer
  /** By operation: what each call with the rules' own limits begins with. */
  readonly #heads = new Map<Operation, Buffer>()

  constructor(
    owner: object,
    channel: Channel,
    rules: readonly RemoteRule[],
    namesOf: (key: string) => string[],
    time: () => number,
  ) {
    this.#owner = owner
    this.#channel = channel
    this.#rules = rules
    this.#records = recordsOf(rules)
    this.#namesOf = namesOf
    this.#time = time
  }

  get rules(): readonly RemoteRule[] {
    return this.#rules
  }

  set rules(rules: readonly RemoteRule[]) {
    this.#rules = rules
    this.#records = recordsOf(rules)
    this.#heads.clear()
  }

  /** Decides keys in order, each for itself. On a Cluster, one key. */
  async ask(op: Asking, asked: readonly Asked[], limit?: CallLimit): Promise<RemoteDecision[]> {
    const rules = this.#rules
    const costs = asked.flatMap(({ cost }) => this.#costs(cost))
    const limits = this.unitLimits(limit)
    const reply = await this.#call(op, asked, limits && recordsOf(rules, limits), costs)
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
      decisions.push(new RemoteDecision(requested, 'redis', parts, refusing))
      at += REPLY_FIELDS * rules.length
    }
    return decisions
  }

  /** Changes a key by `units`, one number for each rule, which may have limits of a call. Returns the units of each rule, times its unit. */
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
    return reply.map((amount, i) => amount * (this.#rules[i]!.rule.unit ?? 1))
  }

  /** The units used since `ms` ago by a rule. */
  async usage(key: string, ms: number, index: number): Promise<number> {
    const costs = this.#rules.map(() => String(ms))
    const reply = await this.#call('w', [{ key, cost: 0 }], undefined, costs, [String(index + 1)])
    checkFault(reply[0]!, key)
    return reply[0]! * (this.#rules[index]!.rule.unit ?? 1)
  }

  /** The limits of a call in units; undefined: those of the rules. */
  unitLimits(limit: CallLimit | undefined): readonly (number | undefined)[] | undefined {
    if (limit === undefined) return undefined
    const limits = typeof limit === 'number' ? [limit] : limit
    return limits.map((own, i) => own && own / (this.#rules[i]!.rule.unit ?? 1))
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
      asked.length === 1 ? this.#namesOf(asked[0]!.key) : asked.flatMap(({ key }) => this.#namesOf(key))
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
  return {
    rule: rule.name,
    allowed: verdict !== Verdict.REFUSED,
    limit: (limit ?? rule.limit) * unit,
    remaining: reply[at + 1]! * unit,
    retryAfterMs: verdict === Verdict.REFUSED ? retryAfterMs : 0,
    resetMs: time(reply[at + 3]!),
    receipt: mark < 0 ? undefined : [mark, reply[at + 5]!],
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
