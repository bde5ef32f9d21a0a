// Runs of the model of leases as traces: what each call changed and answered, so that a Redis can be asked the same.
import type { LeaseMessage, LeaseReply } from '#millrace/redis/leases/lease-message.js'
import { one, randomOf } from './exact.js'

/** Noon of a day: the same time modulo each window of the model. */
export const START_MS = 1_800_000_000_000

interface ModelRule {
  readonly limit: number
  readonly windowMs: number
  readonly parts: number
}

/** What a rule says after a call. */
export interface Figures {
  readonly remaining: number
  readonly resetMs: number
}

/** What one rule says of a request of a strict caller. */
export interface Verdict extends Figures {
  readonly isAdmitted: boolean
  readonly retryAfterMs: number
}

export type Step = { readonly nowMs: number } & (
  | { readonly do: 'message'; readonly message: LeaseMessage; readonly expected: LeaseReply | undefined }
  | { readonly do: 'check' | 'peek'; readonly cost: number; readonly expected: readonly Verdict[] }
  | { readonly do: 'penalize'; readonly rule: number; readonly units: number; readonly ageMs: number }
  | { readonly do: 'refund' | 'block'; readonly amount: number }
  | { readonly do: 'unblock' | 'clear' | 'lose' | 'copy' | 'failOver' }
)

export interface Trace {
  readonly rules: readonly ModelRule[]
  readonly steps: readonly Step[]
  /** Why a window was over. */
  readonly wrong: string | undefined
}

interface ModelValue {
  readonly birth: number
  readonly untilMs: number
  readonly sums: ReadonlyMap<number, number>
  readonly nodes: ReadonlyMap<string, { readonly held: number; readonly endMs: number }>
}

interface ModelMessage {
  readonly id: string
  readonly seq: number
  readonly wants: number
  readonly direct: readonly number[]
  readonly rules: readonly Omit<LeaseMessage['rules'][number], 'limit'>[]
}
interface ModelReply extends Omit<LeaseReply, 'rules' | 'nowMs'> {
  readonly now: number
  readonly births: readonly number[]
}

interface ModelServer {
  message(now: number, message: ModelMessage): ModelReply | undefined
  strict(now: number, cost: number): boolean
  restore(now: number, r: number, aged: readonly { units: number; ageMs: number }[]): number
  block(now: number, ms: number): void
  unblock(): void
  clear(): void
  refund(now: number, units: number): void
  lose(): void
  copy(): unknown
  remember(values: unknown): void
  valuesAt(now: number): readonly ModelValue[]
}

const folder = new URL('../../../test/model/leases/', import.meta.url)
const load = async (name: string) => import(new URL(`${name}.mjs`, folder).href)
const { Server, freeOf, leaveAt } = (await load('server')) as {
  Server: new () => ModelServer
  freeOf(value: ModelValue, rule: ModelRule): number
  leaveAt(rule: ModelRule, granule: number): number
}
const { S } = (await load('settings')) as { S: { rules: readonly ModelRule[]; leaseMs: number } }
const { randomRun } = (await load('random')) as {
  randomRun(seed: number, mistake: undefined, makeServer: () => object): { wrong: string | undefined }
}

export const idOf = (name: string): Buffer => Buffer.from(name.padEnd(8))

/** The units of a value with the granules in which they leave. */
function unitsOf(
  { sums, nodes }: ModelValue,
  { windowMs, parts }: ModelRule,
): [granule: number, units: number][] {
  const held = [...nodes.values()].map(({ held, endMs }): [number, number] => [
    Math.floor((endMs * parts) / windowMs),
    held,
  ])
  return [...sums, ...held].filter(([, units]) => units > 0).sort(([a], [b]) => a - b)
}

function figuresOf(value: ModelValue, rule: ModelRule, nowMs: number): Figures {
  const newest = unitsOf(value, rule).at(-1)
  const resetMs = newest === undefined ? 0 : leaveAt(rule, newest[0]) - nowMs
  const blockedMs = value.untilMs - nowMs
  if (blockedMs > 0) return { remaining: 0, resetMs: Math.max(resetMs, blockedMs) }
  return { remaining: Math.max(0, freeOf(value, rule)), resetMs }
}

/** When a request is admitted, if nothing else happens. */
function retryAfter(value: ModelValue, rule: ModelRule, nowMs: number, cost: number): number {
  if (cost > rule.limit || value.untilMs === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY
  let free = freeOf(value, rule)
  let waitMs = Math.max(0, value.untilMs - nowMs)
  for (const [granule, units] of unitsOf(value, rule)) {
    if (free >= cost) break
    free += units
    waitMs = Math.max(waitMs, leaveAt(rule, granule) - nowMs)
  }
  return waitMs
}

/** The model's server, with time in whole milliseconds: it writes down what it is asked. */
class Recorder {
  readonly steps: Step[] = []
  readonly #server = new Server()
  readonly #random: (() => number) | undefined

  /** @param random makes changes that no node knows of, if there is one */
  constructor(random?: () => number) {
    this.#random = random
  }

  message(now: number, told: ModelMessage): ModelReply | undefined {
    const nowMs = timeOf(now)
    const rules = told.rules.map(({ ages, ...rule }, r) => ({
      ...{ ...rule, limit: S.rules[r]!.limit },
      ages: ages.map(({ units, ageMs }) => ({ units, ageMs: Math.floor(ageMs) })),
    }))
    const reply = this.#server.message(nowMs, { ...told, rules })
    const message = {
      ...{ id: idOf(told.id), seq: told.seq, leaseMs: S.leaseMs, wants: told.wants, rules },
      direct: told.direct.map((cost) => rules.map(() => cost)),
    }
    this.steps.push({ do: 'message', nowMs, message, expected: reply && this.#read(reply, nowMs) })
    this.#change(nowMs)
    return reply && { ...reply, now }
  }

  #read({ births, extends: isLonger, leased, active, waitMs, admitted }: ModelReply, nowMs: number) {
    const values = this.#server.valuesAt(nowMs)
    return {
      ...{ nowMs, extends: isLonger, leased, active, waitMs, admitted },
      rules: values.map((value, r) => ({
        ...figuresOf(value, S.rules[r]!, nowMs),
        birth: births[r]!,
        mark: admitted.length > 0 ? Math.floor((nowMs * S.rules[r]!.parts) / S.rules[r]!.windowMs) : -1,
        blockedUntilMs: value.untilMs > nowMs ? value.untilMs : 0,
      })),
    }
  }

  strict(now: number, cost: number): boolean {
    const nowMs = timeOf(now)
    this.#decide('peek', nowMs, cost)
    const isAdmitted = this.#decide('check', nowMs, cost)
    this.#change(nowMs)
    return isAdmitted
  }

  #decide(kind: 'check' | 'peek', nowMs: number, cost: number): boolean {
    const before = this.#server.valuesAt(nowMs).map((value, r) => {
      const rule = S.rules[r]!
      const isAdmitted = freeOf(value, rule) >= cost && value.untilMs <= nowMs
      return { isAdmitted, retryAfterMs: isAdmitted ? 0 : retryAfter(value, rule, nowMs, cost) }
    })
    const isAdmitted = kind === 'check' && this.#server.strict(nowMs, cost)
    const values = this.#server.valuesAt(nowMs)
    const expected = before.map((each, r) => ({ ...each, ...figuresOf(values[r]!, S.rules[r]!, nowMs) }))
    this.steps.push({ do: kind, nowMs, cost, expected })
    return isAdmitted
  }

  restore(now: number, r: number, aged: readonly { units: number; ageMs: number }[]): void {
    for (const { units, ageMs } of aged) this.#penalize(timeOf(now), r, units, Math.floor(ageMs))
  }

  #penalize(nowMs: number, rule: number, units: number, ageMs: number): void {
    this.#server.restore(nowMs, rule, [{ units, ageMs }])
    this.steps.push({ do: 'penalize', nowMs, rule, units, ageMs })
  }

  lose(): void {
    this.#server.lose()
    this.steps.push({ do: 'lose', nowMs: 0 })
  }

  copy(): unknown {
    this.steps.push({ do: 'copy', nowMs: 0 })
    return this.#server.copy()
  }

  remember(values: unknown): void {
    this.#server.remember(values)
    this.steps.push({ do: 'failOver', nowMs: 0 })
  }

  #change(nowMs: number): void {
    const random = this.#random
    if (random === undefined || random() > 0.15) return
    const [{ windowMs }] = S.rules as [ModelRule]
    const amount = 1 + Math.floor(6 * random())
    const forMs = one(random, [Number.POSITIVE_INFINITY, 1 + Math.floor((windowMs / 5) * random())])
    const ageMs = one(random, [0, Math.floor(1.2 * windowMs * random())])
    const rule = Math.floor(S.rules.length * random())
    switch (one(random, ['penalize', 'penalize', 'refund', 'refund', 'block', 'unblock', 'clear'])) {
      case 'penalize':
        this.#penalize(nowMs, rule, amount, ageMs)
        break
      case 'refund':
        this.#server.refund(nowMs, amount)
        this.steps.push({ do: 'refund', nowMs, amount })
        break
      case 'block':
        this.#server.block(nowMs, forMs)
        this.steps.push({ do: 'block', nowMs, amount: forMs })
        break
      case 'unblock':
        this.#server.unblock()
        this.steps.push({ do: 'unblock', nowMs })
        break
      case 'clear':
        this.#server.clear()
        this.steps.push({ do: 'clear', nowMs })
    }
  }
}

const timeOf = (now: number): number => START_MS + Math.floor(now)

/** A random run of the model. @param hasChanges whether penalties, refunds, blocks and clearings come in between */
export function traceOf(seed: number, hasChanges: boolean): Trace {
  let recorder: Recorder | undefined
  const random = hasChanges ? randomOf(seed) : undefined
  const { wrong } = randomRun(seed, undefined, () => {
    recorder = new Recorder(random)
    return recorder
  })
  return { rules: S.rules, steps: recorder!.steps, wrong: hasChanges ? undefined : wrong }
}
