import { checkOpen, closedError, type OwnOptions } from '../api/checks.js'
import type { LimiterStats } from '../api/limiter.js'
import type { BatchDecision } from '../core/batch-decision.js'
import type { Clock } from '../core/clock.js'
import { COUNTED, ofMemory } from '../core/closing.js'
import type { Decision } from '../core/decision.js'
import { Outcome } from '../core/inline-decision.js'
import { hasOutcome, shadowedRules } from '../core/rules-decision.js'
import { hearsStoreCalls, tellStoreCall } from '../core/store-calls.js'
import { sumOf } from '../core/sum-of.js'
import { countsRefusals } from '../core/verdict.js'
import type { CountedStatistics } from '../engines/engine.js'
import { type RuleEngine, ruleEngineOf } from '../engines/inline/rule-engine.js'
import { RulesEngine } from '../engines/inline/rules-engine.js'
import type { PoolEngine, PoolSettings } from '../engines/pool/pool.js'
import type { AnyPoolDecision } from '../engines/pool/pool-decision.js'
import { poolOf } from '../engines/pool/unit-pool.js'
import type { RuleMemory } from '../memory/arenas.js'
import type { Key, PackedKeys } from '../memory/keys.js'
import { Op } from '../memory/request-ring.js'
import {
  type AsyncBackend,
  AsyncFacade,
  type Deciding,
  type KeyBatch,
  type KeyChange,
} from './async-facade.js'
import type { MemberRequest } from './group-member.js'
import { type Fingerprint, type LimiterFile, MemoryBackend } from './memory-backend.js'
import { PoolMember } from './pool-member.js'

const CHANGES = { refund: Op.REFUND, penalize: Op.PENALIZE, unblock: Op.UNBLOCK, clear: Op.CLEAR }

/** Sends requests to the workers of a pool: see `engines/pool/pool.ts`. Keys are hashed on the calling thread. */
class PoolBackend extends MemoryBackend implements AsyncBackend<Fingerprint> {
  /** Reads the limits and the statistics on this thread. */
  readonly inline: RuleEngine | RulesEngine
  readonly pool: PoolEngine
  readonly #owner: object
  /** By an operation. */
  readonly #ops: Readonly<Record<Deciding, Op>>
  #last: CountedStatistics | undefined

  /** @throws MillraceError `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_BUNDLED` */
  constructor(owner: object, memory: RuleMemory, clock: Clock, settings: PoolSettings, file?: LimiterFile) {
    const { arenas, names } = memory
    const inline =
      arenas.length === 1 ? ruleEngineOf(arenas[0], names[0], clock) : new RulesEngine(arenas, names, clock)
    const engines = inline instanceof RulesEngine ? inline.engines : [inline]
    super(owner, 'AsyncLimiter', memory, engines, clock, file)
    this.#owner = owner
    this.inline = inline
    this.pool = poolOf(memory, this.share(), settings)
    this.#ops = { check: Op.CHECK, try: arenas.some(countsRefusals) ? Op.ATTEMPT : Op.CHECK, peek: Op.PEEK }
  }

  ready(): Promise<void> {
    return this.pool.ready()
  }

  decide(
    deciding: Deciding,
    { lo, hi }: Fingerprint,
    cost: number,
    options?: Partial<OwnOptions>,
  ): Promise<Decision> {
    const op = this.#ops[deciding]
    const isPlain = op === Op.CHECK && options?.limit === undefined && options?.signal === undefined
    const decision = isPlain ? this.pool.check(lo, hi, cost) : this.pool.request(op, lo, hi, cost, options)
    const isTimed = op !== Op.PEEK && hearsStoreCalls()
    return (isTimed ? this.#timed(decision) : decision) as Promise<Decision>
  }

  /** Tells how long a call takes until its reply. */
  async #timed<T>(call: Promise<T>): Promise<T> {
    const sentMs = performance.now()
    const reply = await call
    tellStoreCall(this.#owner, 'pool', performance.now() - sentMs)
    return reply
  }

  batchOf(keys: readonly Key[] | PackedKeys): KeyBatch {
    const { fingerprints, length } = this.pack(keys)
    return {
      length,
      decide: (...request) => {
        const batch = this.pool.checkMany(fingerprints, ...request) as Promise<BatchDecision>
        return hearsStoreCalls() ? this.#timed(batch) : batch
      },
    }
  }

  change(change: KeyChange, { lo, hi }: Fingerprint, amount: number): Promise<number> {
    const sent =
      change === 'block'
        ? this.pool.requestWithMs(Op.BLOCK, lo, hi, amount)
        : this.pool.request(CHANGES[change], lo, hi, amount)
    const reply = sent as Promise<number>
    if (change === 'penalize') return reply // it makes no room
    return reply.then((changed) => {
      this.waiters.wake(lo, hi) // a new block may end earlier
      return changed
    })
  }

  usage({ lo, hi }: Fingerprint, ms: number, rule: number): Promise<number> {
    return this.pool.requestWithMs(Op.USAGE, lo, hi, ms, rule) as Promise<number>
  }

  owns(what: unknown): what is Decision {
    return this.pool.owns(what) || this.inline.owns(what)
  }

  isGivenBack(decision: Decision): boolean {
    return hasOutcome(decision, Outcome.GIVEN_BACK)
  }

  async giveBack(decision: AnyPoolDecision, amount?: number): Promise<number> {
    checkOpen(this)
    if (!this.pool.owns(decision)) return 0 // a peek of this thread, for a group
    const { lo, hi } = decision.rules[0]!.charge
    const given = (await this.pool.giveBack(decision, amount)) as number
    this.waiters.wake(lo, hi)
    return given
  }

  forgive(decision: AnyPoolDecision): Promise<unknown> {
    return this.pool.forceGiveBack(decision)
  }

  async chargeMore(decision: AnyPoolDecision, cost: number, actualCost: number): Promise<number> {
    checkOpen(this)
    const { lo, hi } = decision.rules[0]!.charge
    return (await this.pool.chargeMore(lo, hi, cost, actualCost, shadowedRules(decision))) as number
  }

  async clearAll(): Promise<void> {
    await this.pool.request(Op.CLEAR_ALL, 0, 0, 0)
    this.changedAll()
  }

  /** What has been counted by the replies that have come. Of a closed pool, its last. */
  present(): CountedStatistics {
    if (this.#last !== undefined) return this.#last
    const counted = this.inline.statistics()
    // This thread has counted what groups have taken back.
    return { ...counted, own: sumOf(this.pool.own.present(), counted.own) }
  }

  async close(): Promise<void> {
    this.waiters.close(closedError())
    await this.pool.close()
    this.#last = this.present()
    this.inline.close()
    this.release()
  }
}

/** Decides on the workers of a pool. */
export class PoolLimiter extends AsyncFacade<Fingerprint, PoolBackend> {
  /** @internal @throws MillraceError `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_BUNDLED` */
  constructor(memory: RuleMemory, clock: Clock, settings: PoolSettings, file?: LimiterFile) {
    super((owner) => new PoolBackend(owner, memory, clock, settings, file))
  }

  /** The engines by which this thread looks at the counts. @internal */
  get ruleEngines(): readonly RuleEngine[] {
    return this.backend.engines
  }

  /** @internal */
  fingerprintOf(key: string): Fingerprint {
    return this.backend.keys.read(key)
  }

  /** Resolves when the workers have decided all requests of before. @internal */
  settled(): Promise<void> {
    return this.open.pool.flush()
  }

  async stats(): Promise<LimiterStats> {
    await this.settled()
    return this[COUNTED]()
  }

  /** @internal */
  [COUNTED](): LimiterStats {
    const { backend } = this
    const stats = { ...backend.present(), waiting: this.waiting, pending: backend.pool.pending }
    return ofMemory(stats, backend.id)
  }

  /**
   * The moment at which a charged decision took effect, for a log that judges the limiter
   * (`InlineDecision.effectMs`). The exact reading stays with the worker. It lies between the request and the
   * reply, within the bucket that was charged. Any moment there will do: a window holds the same buckets
   * wherever in them it begins.
   */
  effectMs(decision: Decision, requestedMs: number, repliedMs: number): number {
    const { charge } = (decision as AnyPoolDecision).rules[0]!
    return Math.max(requestedMs, this.ruleEngines[0]!.estimates.effectOf(charge, repliedMs))
  }

  /** This limiter as a member of a group. @internal */
  toMember(name: string): PoolMember {
    checkOpen(this.backend, `members.${name}`)
    const { backend } = this
    const send = ({ lo, hi, cost, limit, isAttempt }: MemberRequest) =>
      backend.decide(isAttempt ? 'try' : 'check', { lo, hi }, cost, { limit })
    return new PoolMember(name, backend, backend.inline, send, backend.pool.own)
  }
}
