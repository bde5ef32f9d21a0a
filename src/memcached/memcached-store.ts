import { MillraceError } from '../core/errors.js'
import type { CallLimit } from '../engines/engine.js'
import { RemoteDecision } from '../remote/remote-decision.js'
import type { RemoteRule } from '../remote/remote-rule.js'
import {
  type Asked,
  type Asking,
  type Changing,
  type RemoteStore,
  unitsAsked,
} from '../remote/remote-store.js'
import { usedUnits } from '../remote/sliding-counter.js'
import type { Exchange } from './channel.js'
import { increment, readAll, remove, unitsIn, untilIn, write } from './commands.js'
import { blockName, type CounterNames } from './counter-names.js'
import { addAll, giveBack, refund, type Slot, slotAt, takeBack } from './counters.js'
import { chargeable, decideOne, type RuleCount, type UnitCosts } from './deciding.js'
import type { MemcachedPlan } from './memcached-options.js'
import type { Servers } from './servers.js'

/** Key, time and counters of one call. */
interface Call {
  readonly nowMs: number
  readonly names: readonly string[]
  readonly slots: readonly Slot[]
}

/** What a call has found on the server. */
interface Charged {
  /** Without the charges of the call. */
  readonly counts: readonly RuleCount[]
  /** The end of the block. */
  readonly untilMs: number
}

const NOTHING: readonly number[] = []

/**
 * Counts of fixed windows on Memcached, weighted by `sliding-counter.ts`.
 *
 * Memcached has no scripts, so a request is charged first and judged afterwards, by the counters that the increments
 * return. If it is over the limit, its charge is taken back. Two requests at once then each see the other's charge. So
 * no more is admitted than by one after the other, and at worst both are refused.
 *
 * The increments and the read of all other counters are written in one turn on one connection: an admission is one
 * round trip, the first one of a window two. A refusal does not wait for the decrement. If the connection is lost before
 * that, the charge stays until its window has left.
 */
export class MemcachedStore implements RemoteStore {
  readonly #owner: object
  readonly #servers: Servers
  readonly #names: CounterNames
  readonly #time: () => number
  readonly counters = { restored: 0 }
  readonly #maxKeys: number
  /** The keys that this process has asked for: at most `maxKeys`. */
  readonly #asked = new Set<string>()
  rules: readonly RemoteRule[]
  #latestMs = 0

  /** @param time milliseconds since 1970, by the clock of this process. If it steps back, it stands still */
  constructor(
    { owner, rules, maxKeys }: Pick<MemcachedPlan, 'rules' | 'maxKeys'> & { readonly owner: object },
    servers: Servers,
    names: CounterNames,
    time: () => number,
  ) {
    this.#owner = owner
    this.#servers = servers
    this.rules = rules
    this.#maxKeys = maxKeys
    this.#names = names
    this.#time = time
  }

  chargedKeys(): readonly string[] {
    return [...this.#asked]
  }

  #note(key: string): void {
    if (this.#asked.has(key)) return
    const [oldest] = this.#asked
    if (this.#asked.size === this.#maxKeys) this.#asked.delete(oldest!)
    this.#asked.add(key)
  }

  set onRecovery(listener: () => void) {
    this.#servers.onRecovery = listener
  }

  ready(): Promise<void> {
    return this.#servers.ready()
  }

  close(): Promise<void> {
    return this.#servers.close()
  }

  /** A call for each key: requests of one key are charged together, and decided in their order. */
  divide(asked: readonly Asked[]): number[][] {
    const calls = new Map<string, number[]>()
    for (const [i, { key }] of asked.entries()) {
      const call = calls.get(key)
      if (call === undefined) calls.set(key, [i])
      else call.push(i)
    }
    return [...calls.values()]
  }

  async ask(op: Asking, asked: readonly Asked[], limit?: CallLimit): Promise<RemoteDecision[]> {
    const { key } = asked[0]!
    const limits = this.unitLimits(limit)
    return this.#run(key, async (exchange, call) => {
      const blank = this.#countsOf(call, limits)
      const costs = asked.map((each): UnitCosts => unitsAsked(each, this.rules))
      const decide = (as: Asking, { counts, untilMs }: Charged) =>
        asked.map(({ cost }, at) => {
          const { parts, refusing } = decideOne(as, counts, costs[at]!, call.nowMs, untilMs)
          return new RemoteDecision({ owner: this.#owner, key, cost, limits }, 'memcached', parts, refusing)
        })
      // Those who wait ask again and again. So they read first.
      if (op !== 'check') {
        const seen = decide('peek', await this.#charge(exchange, call, NOTHING, blank))
        if (op === 'peek' || seen.some(({ allowed }) => !allowed)) return seen
      }
      const planned = sumOf(costs.map((each) => chargeable(blank, each)))
      const charged = await this.#charge(exchange, call, planned, blank)
      const before = charged.counts.map(({ current }) => current)
      const decisions = decide(op, charged)
      const kept = charged.counts.map(({ current }, i) => current - before[i]!)
      // After the deadline nobody was admitted by this call.
      const excess = exchange.isSettled ? planned : planned.map((units, i) => units - kept[i]!)
      takeBack(exchange, call.slots, excess)
      return decisions
    })
  }

  async change(
    op: Changing,
    key: string,
    units: readonly number[],
    more: readonly string[] = [],
  ): Promise<number[]> {
    const changed = await this.#run(key, async (exchange, call) => {
      switch (op) {
        case 'penalize':
          return addAll(exchange, call.slots, units)
        case 'penalizeAgo':
          return addAll(exchange, this.#slotsAgo(call, Number(more[0])), units)
        case 'refund':
          return refund(exchange, call.slots, units)
        case 'giveBack':
          return Promise.all(call.slots.map((slot, i) => giveBack(exchange, slot, units[i]!, more[2 * i]!)))
        case 'block': {
          const ms = units[0]! < 0 ? Number.POSITIVE_INFINITY : units[0]!
          await write(exchange, blockName(call.names[0]!), `${call.nowMs + ms}`, ms)
          return units.map(() => 0)
        }
        case 'unblock': {
          const name = blockName(call.names[0]!)
          const [values] = await Promise.all([readAll(exchange, [name]), remove(exchange, name)])
          return units.map(() => (untilIn(values, name) > call.nowMs ? 1 : 0))
        }
        case 'clear': {
          const names = call.slots.flatMap(({ name, previousName }) => [name, previousName])
          await Promise.all([...names, blockName(call.names[0]!)].map((name) => remove(exchange, name)))
          return units.map(() => 0)
        }
      }
    })
    return changed.map((amount, i) => amount * (this.rules[i]!.rule.unit ?? 1))
  }

  async usage(key: string, ms: number, index: number): Promise<number> {
    const { rule, windowMs } = this.rules[index]!
    if (ms !== windowMs) {
      const expected = `${windowMs} ms, the window: on Memcached the usage of a part of it is not known`
      throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'lastMs', ms, expected)
    }
    return this.#run(key, async (exchange, call) => {
      const blank = this.#countsOf(call, undefined)
      const { counts } = await this.#charge(exchange, call, NOTHING, blank)
      return usedUnits(counts[index]!) * (rule.unit ?? 1)
    })
  }

  unitLimits(limit: CallLimit | undefined): readonly (number | undefined)[] | undefined {
    if (limit === undefined) return undefined
    const limits = typeof limit === 'number' ? [limit] : limit
    return limits.map((own, i) => own && own / (this.rules[i]!.rule.unit ?? 1))
  }

  async clearAll(): Promise<void> {
    throw clearAllError()
  }

  #run<T>(key: string, act: (exchange: Exchange, call: Call) => Promise<T>): Promise<T> {
    this.#note(key)
    const names = this.#names.of(key)
    // All keys of a call are where the first one is.
    return this.#servers.of(names[0]!).run((exchange) => act(exchange, this.#callNow(names)))
  }

  #callNow(names: readonly string[]): Call {
    this.#latestMs = Math.max(this.#latestMs, Math.floor(this.#time()))
    const nowMs = this.#latestMs
    const slots = this.rules.map(({ windowMs }, i) => slotAt(names[i]!, windowMs, nowMs, nowMs))
    return { nowMs, names, slots }
  }

  /** Before anything has been read. */
  #countsOf({ slots }: Call, limits: readonly (number | undefined)[] | undefined): RuleCount[] {
    return this.rules.map(({ rule, windowMs }, i) => {
      const { index, elapsedMs } = slots[i]!
      return { rule, limit: limits?.[i] ?? rule.limit, windowMs, index, elapsedMs, previous: 0, current: 0 }
    })
  }

  /** Charges the planned units of each rule, and reads everything else, all in one turn. */
  async #charge(
    exchange: Exchange,
    { slots, names }: Call,
    planned: readonly number[],
    blank: readonly RuleCount[],
  ): Promise<Charged> {
    const block = blockName(names[0]!)
    const read = slots.flatMap(({ name, previousName }, i) =>
      planned[i] ? [previousName] : [previousName, name],
    )
    const added = slots.map(({ name, neededMs }, i) =>
      planned[i] ? increment(exchange, name, planned[i], neededMs) : undefined,
    )
    const reading = readAll(exchange, [block, ...read])
    const [values, ...counted] = await Promise.allSettled([reading, ...added])
    const failed = [values, ...counted].find(({ status }) => status === 'rejected')
    try {
      if (failed !== undefined) throw (failed as PromiseRejectedResult).reason
      const { value } = values as PromiseFulfilledResult<Map<string, string>>
      const counts = blank.map((count, i) => {
        const { name, previousName } = slots[i]!
        const own = (counted[i] as PromiseFulfilledResult<number | undefined>).value
        const current = own === undefined ? unitsIn(value, name) : Math.max(0, own - planned[i]!)
        return { ...count, previous: unitsIn(value, previousName), current }
      })
      return { counts, untilMs: untilIn(value, block) }
    } catch (error) {
      const done = counted.map(({ status }, i) => (status === 'fulfilled' ? (planned[i] ?? 0) : 0))
      takeBack(exchange, slots, done)
      throw error
    }
  }

  /** The counters of the windows in which `ageMs` ago was. Those that have left are undefined. */
  #slotsAgo({ nowMs, names, slots }: Call, ageMs: number): (Slot | undefined)[] {
    return this.rules.map(({ windowMs }, i) => {
      const slot = slotAt(names[i]!, windowMs, nowMs - ageMs, nowMs)
      return slot.index < slots[i]!.index - 1 ? undefined : slot
    })
  }
}

const sumOf = (costs: readonly UnitCosts[]): number[] =>
  costs.reduce<number[]>((sum, each) => each.map((units, i) => (sum[i] ?? 0) + units), [])

export function clearAllError(): MillraceError {
  const expected = 'clear(key), or a limiter with another prefix: Memcached does not list its keys'
  return new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'clearAll', 'a limiter on Memcached', expected)
}
