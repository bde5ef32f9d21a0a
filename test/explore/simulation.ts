import type { InlineDecision } from '#millrace/core/decision.js'
import { Outcome } from '#millrace/core/decision.js'
import type { InlineEngine } from '#millrace/engines/inline.js'
import type { Arena } from '#millrace/memory/arena.js'
import {
  ADM,
  BUCKETS,
  CLAIMED,
  COUNT,
  HEADER,
  HI,
  NAMES_AT,
  NODE_COUNT,
  refundsOf,
  STATE,
  TICK,
} from '#millrace/memory/layout.js'
import type { Built } from './copy.js'
import { Ledger } from './ledger.js'
import { Log, type LogMark, Machine } from './machine.js'
import { GRANULE_MS, type Op, type Scenario } from './scenario.js'

/** The state of one thread of the scenario. */
interface SimulatedThread {
  readonly log: Log
  /** The number of finished operations that the ledger has recorded. */
  reported: number
  finished: boolean
}

export interface ThreadMark extends LogMark {
  reported: number
  finished: boolean
}

const FIELDS = ['hi', 'admission', 'tick', 'as-of', 'until']
const EXTRA = ['generation', 'giving']
const STATES = ['FREE', 'CLAIMED', 'NAMED', 'LIVE']
const HEADER_NAMES = new Map<number, string>(Object.entries(HEADER).map(([name, index]) => [index, name]))
const { hash1, hash2 } = new Log()
const FRESH: ThreadMark = { length: 0, hash1, hash2, reported: 0, finished: false }

interface Fingerprint {
  lo: number
  hi: number
}

/** A scenario set up on the built code: its memory, its threads, its clock, and the ledger that judges. */
export class Simulation {
  readonly scenario: Scenario
  readonly machine: Machine
  readonly ledger: Ledger
  readonly threads: SimulatedThread[]
  readonly readings: number[]
  readonly #built: Built
  readonly #arena: Arena
  readonly #start: number
  readonly #fingerprints = new Map<number, Fingerprint>()

  constructor(built: Built, scenario: Scenario, shared?: Uint8Array) {
    const { limit = 1, buckets = 1, edge = 'strict', onFull = 'evict', ways = 2, sums = 'linear' } = scenario
    const rule = { name: 'default', limit, windowMs: buckets * GRANULE_MS, buckets, edge }
    this.scenario = scenario
    this.#built = built
    built.playOn(undefined)
    this.#arena = built.createArena(rule, keysFor(built, rule, ways), onFull, 0, sums)
    this.machine = new Machine(this.#arena.words, Ledger.notesFor(scenario, this.#arena.shape.ring), shared)
    this.machine.hash1 = 1
    this.ledger = new Ledger(scenario, this.machine, this.#arena, (way) => this.#keyOf(way))
    this.readings = scenario.times.map((time) => time * GRANULE_MS)
    this.threads = scenario.threads.map(() => ({ log: new Log(), reported: 0, finished: false }))
    for (const key of this.ledger.keys) this.#fingerprints.set(key, this.#fingerprintOf(key))
    built.playOn(this.machine)
    this.#prepare()
    this.machine.watch = (index, before, after) => this.ledger.observe(index, before, after)
    this.machine.beforeEach = (thread) => this.ledger.beforeOperation(thread)
    if (this.readings.length > 1) this.machine.shareClock()
    this.#start = this.machine.mark()
  }

  /** Whether every thread has ended or died. */
  get atRest(): boolean {
    return this.threads.every((own, thread) => own.finished || this.isDead(thread))
  }

  get clockCanMove(): boolean {
    return this.machine.getNote(0) < this.readings.length - 1
  }

  isDead(thread: number): boolean {
    return (this.ledger.dead & (1 << thread)) !== 0
  }

  canRun(thread: number): boolean {
    return !this.threads[thread]!.finished && !this.isDead(thread)
  }

  moveClock(): void {
    this.machine.setNote(0, this.machine.getNote(0) + 1)
  }

  /** Returns to the state before the first step. */
  reset(): void {
    this.machine.backTo(this.#start)
    for (const [thread] of this.threads.entries()) this.backTo(thread, FRESH)
    this.ledger.wrong = undefined
  }

  /** Lets a thread continue, by a number of steps or by a number of operations of any kind. */
  run(thread: number, steps: number, most?: number): void {
    const own = this.threads[thread]!
    this.#built.playOn(this.machine)
    own.finished = this.machine.run(thread, own.log, () => this.#play(thread), steps, most)
  }

  markOf(thread: number): ThreadMark {
    const { log, reported, finished } = this.threads[thread]!
    return { length: log.results.length, hash1: log.hash1, hash2: log.hash2, reported, finished }
  }

  backTo(thread: number, mark: ThreadMark): void {
    const own = this.threads[thread]!
    own.log.backTo(mark)
    own.reported = mark.reported
    own.finished = mark.finished
  }

  /** Judges the state in which no thread is inside an operation. The ledger records violations. */
  judgeAtRest(): void {
    this.ledger.judgeMemory()
    // A dead thread may have left a charge.
    if (this.scenario.forbidden.includes('refused at rest') && this.ledger.dead === 0) this.#judgeRoom()
    if (this.scenario.forbidden.includes('locked out')) this.#judgeIdle()
  }

  /** The name of a word of memory. */
  nameOf(index: number): string {
    const { shape } = this.#arena
    if (index >= this.machine.words.length) return 'the clock'
    if (index < NAMES_AT) return HEADER_NAMES.get(index) ?? `header ${index}`
    if (index < shape.waysAt) return `name of way ${index - NAMES_AT}`
    if (index >= shape.extraAt) {
      const extra = index - shape.extraAt
      return `${EXTRA[extra % shape.extraWords]} of way ${Math.floor(extra / shape.extraWords)}`
    }
    const field = (index - shape.waysAt) % shape.wayWords
    const way = Math.floor((index - shape.waysAt) / shape.wayWords)
    const slot = field - BUCKETS
    const part = slot < shape.ring ? `bucket ${slot}` : `node ${slot - shape.ring}`
    return `${FIELDS[field] ?? part} of way ${way}`
  }

  /** The value of a word of memory in readable form. */
  describe(index: number, value: number): string {
    const { shape } = this.#arena
    const field =
      index < shape.waysAt || index >= shape.extraAt ? -1 : (index - shape.waysAt) % shape.wayWords
    if (index >= this.machine.words.length) return `${this.readings[this.machine.getNote(0)]} ms`
    if (field === ADM) return `epoch ${value >>> 24} ${STATES[(value & STATE) >>> 22]} total ${value & COUNT}`
    if (field >= BUCKETS + shape.ring) return `lap ${value >>> 24} count ${value & NODE_COUNT}`
    if (field >= BUCKETS) return `lap ${value >>> 24} refunds ${refundsOf(value)} count ${value & COUNT}`
    return String(value)
  }

  #keyOf(way: number): number | undefined {
    const { words, shape } = this.#arena
    const base = shape.waysAt + way * shape.wayWords
    for (const [key, { lo, hi }] of this.#fingerprints) {
      if (words[NAMES_AT + way] === lo && words[base + HI] === hi) return key
    }
    return undefined
  }

  #judgeRoom(): void {
    const now = this.readings[this.machine.getNote(0)]!
    for (const key of this.ledger.keys) {
      const limit = this.#limit
      const used = this.ledger.used(key, Math.floor(now / GRANULE_MS))
      if (used >= limit || this.ledger.isBlocked(key, now)) continue
      if (!this.#isAdmittedAlone(key, limit - used, now))
        this.ledger.fail('refused at rest', `key ${key}: ${used} of ${limit} used, and no room for the rest`)
    }
  }

  #judgeIdle(): void {
    const { buckets = 1, gaps = [], restKeys = [1], ahead = [] } = this.scenario
    const now = this.readings[this.machine.getNote(0)]!
    for (const gap of [buckets + 1 + Math.max(0, ...ahead), ...gaps]) {
      for (const key of restKeys) {
        const later = now + gap * GRANULE_MS
        if (this.ledger.isBlocked(key, later)) continue
        if (!this.#isAdmittedAlone(key, this.#limit, later))
          this.ledger.fail('locked out', `key ${key}, ${gap} granules later`)
      }
    }
  }

  get #limit(): number {
    return this.#engine(() => 0).limit
  }

  #isAdmittedAlone(key: number, cost: number, atMs: number): boolean {
    const { machine } = this
    const mark = machine.mark()
    const { lo, hi } = this.#fingerprints.get(key)!
    let allowed = false
    this.#built.playOn(machine)
    machine.runAtRest(() => {
      allowed = this.#engine(() => atMs).checkNow(lo, hi, cost).allowed
    })
    machine.backTo(mark)
    return allowed
  }

  #prepare(): void {
    for (const [time, op] of this.scenario.before ?? []) {
      const engine = this.#engine(() => time * GRANULE_MS)
      engine.reading.take()
      const decided = this.#do(op, engine, undefined, -1)
      for (const [key, decision] of decided) this.ledger.remember(this.#decided(key, decision, engine))
      if (op.do === 'block') this.ledger.blocked(op.key, engine.reading.nowMs + op.ms)
      if (op.do === 'unblock') this.ledger.blocked(op.key, 0)
      if (op.do === 'refund') this.ledger.refunded(op.key, Math.floor(time), op.cost)
      if (op.do === 'lose') this.#lose(op.key)
      if (op.do === 'penalize') this.ledger.penalized(op.key, Math.floor(time), op.cost)
    }
  }

  #lose(key: number): void {
    const { shape } = this.#arena
    for (let way = 0; way < shape.ways; way++) {
      if (this.#keyOf(way) !== key) continue
      this.machine.words[shape.waysAt + way * shape.wayWords + ADM] = CLAIMED
      this.ledger.lost(key, way)
    }
  }

  /** Runs a thread from its start. Called again for every step. */
  #play(thread: number): void {
    const { machine, ledger } = this
    const own = this.threads[thread]!
    const aheadMs = (this.scenario.ahead?.[thread] ?? 0) * GRANULE_MS
    const clock = () => machine.readClock(this.readings) + aheadMs
    let engine = this.#engine(clock)
    let last: InlineDecision | undefined
    let hint = -1
    let ended = 0
    /** Whether an operation has just returned for the first time, so that the ledger must record it. */
    const isUnreported = () => {
      if (ended++ !== own.reported || !machine.isNew) return false
      own.reported++
      machine.pause([
        ended,
        hint,
        engine.reading.nowMs,
        last?.outcome ?? -1,
        last?.way ?? -1,
        last?.tick ?? -1,
        last?.stamp ?? -1,
      ])
      return true
    }
    ledger.thread = thread
    for (const op of this.scenario.threads[thread]!) {
      ledger.op = op
      if (op.do === 'attach') engine = this.#engine(clock, this.#built.attachArena(this.#arena.buffer))
      if (op.do === 'batch' || op.do === 'read clock' || (op.do === 'check' && !op.late))
        engine.reading.take()
      if (op.do === 'batch') {
        for (const key of op.keys) {
          const { lo, hi } = this.#fingerprints.get(key)!
          last = engine.check(lo, hi, 1, -1)
          if (!isUnreported()) continue
          ledger.decided(this.#decided(key, last, engine))
        }
        continue
      }
      const [decided] = this.#do(op, engine, last, hint)
      if (decided) {
        last = decided[1]
        hint = last.way
      }
      if (!isUnreported()) continue
      if (decided) ledger.decided(this.#decided(decided[0], decided[1], engine))
      else ledger.ends()
    }
  }

  #do(
    op: Op,
    engine: InlineEngine,
    last: InlineDecision | undefined,
    hint: number,
  ): [key: number, InlineDecision][] {
    const { lo, hi } = this.#fingerprints.get('key' in op ? op.key : 1)!
    switch (op.do) {
      case 'check':
        return [[op.key, engine.check(lo, hi, op.cost, op.handle ? hint : -1)]]
      case 'peek':
        engine.peek(lo, hi, op.cost)
        return []
      case 'give back':
        if (last?.outcome === Outcome.CHARGED) engine.changes.giveBack(last)
        return []
      case 'refund':
        engine.changes.refund(lo, hi, op.cost)
        return []
      case 'penalize':
        engine.changes.penalize(lo, hi, op.cost)
        return []
      case 'lose':
        engine.changes.penalize(lo, hi, 1)
        return []
      case 'block':
        engine.changes.block(lo, hi, op.ms)
        return []
      case 'unblock':
        engine.changes.unblock(lo, hi)
        return []
      case 'clear':
        engine.changes.clear(lo, hi)
        return []
      case 'update':
        engine.limit = op.limit
        return []
      default:
        return []
    }
  }

  #decided(key: number, decision: InlineDecision, { reading }: InlineEngine) {
    const { cost, limit, outcome, tick, way } = decision
    const { nowMs, absoluteTick } = reading
    const { waysAt, wayWords } = this.#arena.shape
    const newest = way < 0 ? 0 : this.machine.words[waysAt + way * wayWords + TICK]!
    const isOwnCell = way >= 0 && this.#keyOf(way) === key
    return { key, cost, limit, outcome, tick, nowMs, isOwnCell, effectTick: Math.max(absoluteTick, newest) }
  }

  #engine(now: () => number, arena = this.#arena): InlineEngine {
    return new this.#built.InlineEngine(arena, 'default', { now })
  }

  /**
   * A fingerprint that the table maps to the wanted sets: it multiplies and shifts the halves
   * (`memory/table.ts`).
   */
  #fingerprintOf(key: number): Fingerprint {
    const { sets } = this.#arena.shape
    const [first, second] = this.scenario.homes?.[key] ?? [0, 1]
    const step = (second - first - 1 + sets) % sets
    const lo = Math.ceil((first / sets) * 2 ** 32) + 64 * key
    const hi = sets === 2 ? 64 * key : Math.ceil((step / (sets - 1)) * 2 ** 32) + 64 * key
    return { lo: lo | 0, hi: hi | 0 }
  }
}

/** The `maxKeys` for which a table has this number of sets: a table is sized for 80 % load. */
function keysFor(built: Built, rule: Parameters<Built['createArena']>[0], sets: number): number {
  for (let keys = 1; keys <= 64 * sets; keys++) {
    if (built.createArena(rule, keys, 'evict', 0).shape.sets === sets) return keys
  }
  throw new Error(`no table has ${sets} sets`)
}
