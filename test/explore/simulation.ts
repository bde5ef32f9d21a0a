import type { InlineDecision } from '#millrace/core/inline-decision.js'
import { Outcome } from '#millrace/core/inline-decision.js'
import type { InlineEngine } from '#millrace/engines/inline/inline.js'
import type { Arenas } from '#millrace/memory/arenas.js'
import { ADM, CLAIMED, HASH, HI, NAMES_AT } from '#millrace/memory/layout.js'
import type { Arena } from '#millrace/memory/records.js'
import type { Built } from './copy.js'
import type { Decided } from './decided.js'
import { Ledger } from './ledger.js'
import { type DecidedPart, Ledgers } from './ledgers.js'
import { LimiterPlayer, type Played } from './limiter-player.js'
import { Log, type LogMark, Machine } from './machine.js'
import { FIRST_OF_LEDGERS, Presence } from './presence.js'
import { type IsAdmitted, RestJudge } from './rest-judge.js'
import { GRANULE_MS, keysOf, type Op, type Scenario } from './scenario.js'
import { arenasFor, type Fingerprint, fingerprintOf, unitsOf } from './table-for.js'
import { describeWord, nameOfWord } from './word-names.js'

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

const { hash1, hash2 } = new Log()
const FRESH: ThreadMark = { length: 0, hash1, hash2, reported: 0, finished: false }

/** A rule of the scenario, with the memory in which it counts. */
interface Rule {
  readonly rule: number
  readonly arena: Arena
  readonly ledger: Ledger
  /** The index of the arena's first word. */
  readonly start: number
}

/** A scenario set up on the built code: its memory, its threads, its clock, and the ledger that judges. */
export class Simulation {
  readonly scenario: Scenario
  readonly machine: Machine
  readonly ledger: Ledgers
  readonly threads: SimulatedThread[]
  readonly readings: number[]
  readonly #built: Built
  readonly #rules: readonly Rule[]
  readonly #arenas: Arenas
  readonly #start: number
  readonly #fingerprints = new Map<number, Fingerprint>()

  constructor(built: Built, scenario: Scenario, shared?: Uint8Array) {
    this.scenario = scenario
    this.#built = built
    built.playOn(undefined)
    this.#arenas = arenasFor(built, scenario)
    const [{ buffer }] = this.#arenas
    const starts = this.#arenas.map(({ words }) => words.byteOffset / 4)
    const ofRules = [
      scenario,
      ...(scenario.further ?? []).map((rule) => ({ ...scenario, buckets: 1, ...rule })),
    ]
    const notes = ofRules.map((own, i) => Ledger.notesFor(own, i, this.#arenas[i]!.shape.ring))
    const all = notes.reduce((sum, own) => sum + own, FIRST_OF_LEDGERS)
    const words = new Int32Array(buffer, 0, buffer.byteLength / 4)
    this.machine = new Machine(words, all, shared, starts)
    this.machine.hash1 = 1
    const presence = new Presence(this.machine)
    let first = FIRST_OF_LEDGERS
    this.#rules = ofRules.map((own, rule) => {
      const arena = this.#arenas[rule]!
      const keyOf = (way: number) => this.#keyOf(arena, way)
      const ledger = new Ledger(own, rule, this.machine, arena, presence, first, keyOf)
      first += notes[rule]!
      return { rule, arena, ledger, start: starts[rule]! }
    })
    const ledgers = this.#rules.map(({ ledger }) => ledger)
    this.ledger = new Ledgers(ledgers, presence, scenario.forbidden)
    this.readings = scenario.times.map((time) => time * GRANULE_MS)
    this.threads = scenario.threads.map(() => ({ log: new Log(), reported: 0, finished: false }))
    for (const key of keysOf(scenario))
      this.#fingerprints.set(key, fingerprintOf(scenario, this.#arenas[0], key))
    this.machine.watch = (index, before, after) => {
      const { ledger, start } = this.#ruleAt(index)
      ledger.observe(index - start, before, after)
    }
    built.playOn(this.machine)
    this.#prepare()
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
    this.ledger.forgetWrong()
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

  /** Judges the state in which no thread is inside an operation. The ledgers record violations. */
  judgeAtRest(): void {
    const nowMs = this.readings[this.machine.getNote(0)]!
    for (const { arena, ledger } of this.#rules) {
      ledger.judgeMemory()
      const { limit } = this.#engine(() => 0, arena)
      const isAdmitted: IsAdmitted = (key, cost, fromMs, atMs) =>
        this.#isAdmittedAlone(arena, key, cost, fromMs, atMs)
      const judge = new RestJudge(this.scenario, ledger, limit, isAdmitted)
      // A dead thread may have left a charge.
      if (this.ledger.dead === 0) {
        judge.judgeRoom(nowMs)
        judge.judgeUsage(nowMs, (key, atMs) => this.#usageAlone(arena, key, atMs))
      }
      judge.judgeIdle(nowMs)
    }
  }

  /** The name of a word of memory. */
  nameOf(index: number): string {
    if (index >= this.machine.words.length) return 'the clock'
    const { arena, rule, start } = this.#ruleAt(index)
    return `${nameOfWord(arena.shape, index - start)}${this.#rules.length > 1 ? ` of rule ${rule}` : ''}`
  }

  /** The value of a word of memory in readable form. */
  describe(index: number, value: number): string {
    if (index >= this.machine.words.length) return `${this.readings[this.machine.getNote(0)]} ms`
    const { arena, start } = this.#ruleAt(index)
    return describeWord(arena.shape, index - start, value)
  }

  #ruleAt(index: number): Rule {
    return this.#rules.findLast(({ start }) => start <= index)!
  }

  #keyOf({ words, shape }: Arena, way: number): number | undefined {
    const base = shape.waysAt + way * shape.wayWords
    for (const [key, { lo, hi }] of this.#fingerprints) {
      if (words[NAMES_AT + way] === lo && (words[base + HI]! & HASH) === hi) return key
    }
    return undefined
  }

  /** The units of a key in the whole window at the reading `atMs`, seen alone. */
  #usageAlone(arena: Arena, key: number, atMs: number): number {
    const { machine } = this
    const mark = machine.mark()
    const { lo, hi } = this.#fingerprints.get(key)!
    let used = 0
    this.#built.playOn(machine)
    machine.runAtRest(() => {
      const engine = this.#engine(() => atMs, arena)
      used = engine.usage(lo, hi, engine.reading.ticks.windowMs)
    })
    machine.backTo(mark)
    return used
  }

  /** Decides alone, at the reading `atMs`, and undoes it. Returns whether it was admitted. */
  #isAdmittedAlone(arena: Arena, key: number, cost: number, fromMs: number, atMs: number): boolean {
    const { machine } = this
    const mark = machine.mark()
    const { lo, hi } = this.#fingerprints.get(key)!
    let allowed = false
    this.#built.playOn(machine)
    machine.runAtRest(() => {
      // This converts a cell of another record.
      if (fromMs !== atMs) this.#engine(() => fromMs, arena).usage(lo, hi, 1)
      allowed = this.#engine(() => atMs, arena).checkNow(lo, hi, cost).allowed
    })
    machine.backTo(mark)
    return allowed
  }

  #prepare(): void {
    for (const [time, op] of this.scenario.before ?? []) {
      const now = () => time * GRANULE_MS
      if (op.do === 'change') this.#change(op, now)
      else if (this.scenario.further !== undefined && op.do !== 'lose') {
        for (const part of this.#partsOf(this.#player(now).play(op), op)) {
          this.#rules[part.rule]!.ledger.remember(part)
        }
      } else {
        const engine = this.#engine(now)
        engine.reading.take()
        for (const [key, decision] of this.#do(op, engine, undefined, -1))
          this.#rules[0]!.ledger.remember(this.#decided(key, decision))
      }
      for (const { arena, ledger } of this.#rules) {
        if (op.do === 'block') ledger.blocked(op.key, now() + op.ms)
        if (op.do === 'unblock') ledger.blocked(op.key, 0)
        if (op.do === 'refund') ledger.refunded(op.key, now(), op.cost)
        if (op.do === 'lose') this.#lose(op.key, arena, ledger)
        if (op.do === 'penalize') ledger.penalized(op.key, now(), op.cost)
      }
    }
  }

  #lose(key: number, arena: Arena, ledger: Ledger): void {
    const { shape, words } = arena
    for (let way = 0; way < shape.ways; way++) {
      if (this.#keyOf(arena, way) !== key) continue
      words[shape.waysAt + way * shape.wayWords + ADM] = CLAIMED
      ledger.lost(key, way)
    }
  }

  /** Runs a thread from its start. Called again for every step. */
  #play(thread: number): void {
    if (this.scenario.further === undefined) this.#playOnEngine(thread)
    else this.#playOnLimiter(thread)
  }

  #playOnLimiter(thread: number): void {
    const { machine, ledger } = this
    const own = this.threads[thread]!
    const now = () => machine.readClock(this.readings)
    const player = this.#player(now)
    for (const [position, op] of this.scenario.threads[thread]!.entries()) {
      ledger.goesOn(thread, position, op)
      const played = op.do === 'change' ? this.#change(op, now) : player.play(op)
      if (position !== own.reported || !machine.isNew) continue
      own.reported++
      machine.pause([position, ...player.state])
      if (played === undefined) ledger.ends()
      else ledger.decided(played.decision.allowed, this.#partsOf(played, op))
    }
  }

  #player(now: () => number): LimiterPlayer {
    const fingerprintOf = (key: number) => this.#fingerprints.get(key)!
    return new LimiterPlayer(this.#built, this.#arenas, now, fingerprintOf)
  }

  #partsOf(played: Played | undefined, op: Op): DecidedPart[] {
    if (played === undefined) return []
    const key = 'key' in op ? op.key : 1
    return [...played.parts].map(([rule, decision]) => {
      return { ...this.#decided(key, decision), rule, isDeciding: rule === played.refusing }
    })
  }

  #playOnEngine(thread: number): void {
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
    for (const [position, op] of this.scenario.threads[thread]!.entries()) {
      ledger.goesOn(thread, position, op)
      if (op.do === 'attach') engine = this.#engine(clock, this.#built.attachArena(this.#arenas[0].buffer))
      if (op.do === 'batch' || op.do === 'read clock' || (op.do === 'check' && !op.late))
        engine.reading.take()
      if (op.do === 'batch') {
        for (const key of op.keys) {
          const { lo, hi } = this.#fingerprints.get(key)!
          last = engine.check(lo, hi, 1, -1)
          if (!isUnreported()) continue
          ledger.decided(last.allowed, [this.#partOf(key, last)])
        }
        continue
      }
      const [decided] = this.#do(op, engine, last, hint)
      if (decided) {
        last = decided[1]
        hint = last.way
      }
      if (!isUnreported()) continue
      if (decided) ledger.decided(decided[1].allowed, [this.#partOf(decided[0], decided[1])])
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
      case 'clear all':
        engine.changes.clearAll()
        return []
      case 'update':
        engine.limit = op.limit
        return []
      case 'change':
        this.#change(op, engine.reading.clock.now)
        return []
      default:
        return []
    }
  }

  #change({ buckets, granule = 1, limit, rule = 0 }: Extract<Op, { do: 'change' }>, now: () => number): void {
    const units = unitsOf(this.scenario.algorithm, limit ?? this.scenario.limit ?? 1, buckets)
    const window = { windowMs: buckets * granule * GRANULE_MS, buckets, units }
    this.#built.changeWindowOf(this.#arenas, rule, window, limit, now())
  }

  #partOf(key: number, decision: InlineDecision): DecidedPart {
    return { ...this.#decided(key, decision), rule: 0, isDeciding: true }
  }

  #decided(key: number, decision: InlineDecision): Decided {
    const { cost, limit, outcome, tick, way, at: nowMs } = decision
    return { key, cost, limit, outcome, tick, nowMs, way }
  }

  #engine(now: () => number, arena = this.#arenas[0]): InlineEngine {
    return new this.#built.InlineEngine(arena, 'default', { now })
  }
}
