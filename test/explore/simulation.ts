import type { InlineDecision } from '#millrace/core/decision.js'
import { Outcome } from '#millrace/core/decision.js'
import type { Rule as CheckedRule } from '#millrace/core/rule.js'
import type { InlineEngine } from '#millrace/engines/inline.js'
import type { Arena } from '#millrace/memory/arena.js'
import type { Arenas } from '#millrace/memory/arenas.js'
import { ADM, CLAIMED, HASH, HI, NAMES_AT, TICK } from '#millrace/memory/layout.js'
import type { Built } from './copy.js'
import type { Decided } from './decided.js'
import { Ledger } from './ledger.js'
import { type DecidedPart, Ledgers } from './ledgers.js'
import { LimiterPlayer, type Played } from './limiter-player.js'
import { Log, type LogMark, Machine } from './machine.js'
import { FIRST_OF_LEDGERS, Presence } from './presence.js'
import { GRANULE_MS, keysOf, type Op, type Scenario } from './scenario.js'
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

interface Fingerprint {
  lo: number
  hi: number
}

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
    const notes = ofRules.map((own, i) => Ledger.notesFor(own, this.#arenas[i]!.shape.ring))
    const all = notes.reduce((sum, own) => sum + own, FIRST_OF_LEDGERS)
    const words = new Int32Array(buffer, 0, buffer.byteLength / 4)
    this.machine = new Machine(words, all, shared, starts)
    this.machine.hash1 = 1
    const presence = new Presence(this.machine)
    let first = FIRST_OF_LEDGERS
    this.#rules = ofRules.map((own, rule) => {
      const arena = this.#arenas[rule]!
      const keyOf = (way: number) => this.#keyOf(arena, way)
      const ledger = new Ledger(own, this.machine, arena, presence, first, keyOf)
      first += notes[rule]!
      return { rule, arena, ledger, start: starts[rule]! }
    })
    const ledgers = this.#rules.map(({ ledger }) => ledger)
    this.ledger = new Ledgers(ledgers, presence, scenario.forbidden)
    this.readings = scenario.times.map((time) => time * GRANULE_MS)
    this.threads = scenario.threads.map(() => ({ log: new Log(), reported: 0, finished: false }))
    for (const key of keysOf(scenario)) this.#fingerprints.set(key, this.#fingerprintOf(key))
    built.playOn(this.machine)
    this.#prepare()
    this.machine.watch = (index, before, after) => {
      const { ledger, start } = this.#ruleAt(index)
      ledger.observe(index - start, before, after)
    }
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
    const { forbidden } = this.scenario
    for (const rule of this.#rules) {
      rule.ledger.judgeMemory()
      // A dead thread may have left a charge.
      if (forbidden.includes('refused at rest') && this.ledger.dead === 0) this.#judgeRoom(rule)
      if (forbidden.includes('locked out')) this.#judgeIdle(rule)
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

  #judgeRoom({ arena, ledger }: Rule): void {
    const now = this.readings[this.machine.getNote(0)]!
    const { limit } = this.#engine(() => 0, arena)
    for (const key of ledger.keys) {
      const used = ledger.used(key, Math.floor(now / GRANULE_MS))
      if (used >= limit || ledger.isBlocked(key, now)) continue
      if (!this.#isAdmittedAlone(arena, key, limit - used, now))
        ledger.fail('refused at rest', `key ${key}: ${used} of ${limit} used, and no room for the rest`)
    }
  }

  #judgeIdle({ arena, ledger }: Rule): void {
    const { gaps = [], restKeys = [1], ahead = [] } = this.scenario
    const now = this.readings[this.machine.getNote(0)]!
    const { limit } = this.#engine(() => 0, arena)
    for (const gap of [arena.shape.buckets + 1 + Math.max(0, ...ahead), ...gaps]) {
      for (const key of restKeys) {
        const later = now + gap * GRANULE_MS
        if (ledger.isBlocked(key, later)) continue
        if (!this.#isAdmittedAlone(arena, key, limit, later))
          ledger.fail('locked out', `key ${key}, ${gap} granules later`)
      }
    }
  }

  #isAdmittedAlone(arena: Arena, key: number, cost: number, atMs: number): boolean {
    const { machine } = this
    const mark = machine.mark()
    const { lo, hi } = this.#fingerprints.get(key)!
    let allowed = false
    this.#built.playOn(machine)
    machine.runAtRest(() => {
      allowed = this.#engine(() => atMs, arena).checkNow(lo, hi, cost).allowed
    })
    machine.backTo(mark)
    return allowed
  }

  #prepare(): void {
    for (const [time, op] of this.scenario.before ?? []) {
      const now = () => time * GRANULE_MS
      if (this.scenario.further !== undefined && op.do !== 'lose') {
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
        if (op.do === 'refund') ledger.refunded(op.key, Math.floor(time), op.cost)
        if (op.do === 'lose') this.#lose(op.key, arena, ledger)
        if (op.do === 'penalize') ledger.penalized(op.key, Math.floor(time), op.cost)
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
    const player = this.#player(() => machine.readClock(this.readings))
    for (const [position, op] of this.scenario.threads[thread]!.entries()) {
      ledger.goesOn(thread, position, op)
      const played = player.play(op)
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
      return { ...this.#decided(key, decision, rule), rule, isDeciding: rule === played.refusing }
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
      case 'update':
        engine.limit = op.limit
        return []
      default:
        return []
    }
  }

  #partOf(key: number, decision: InlineDecision): DecidedPart {
    return { ...this.#decided(key, decision), rule: 0, isDeciding: true }
  }

  #decided(key: number, decision: InlineDecision, rule = 0): Decided {
    const { cost, limit, outcome, tick, way, at: nowMs } = decision
    const { arena } = this.#rules[rule]!
    const { waysAt, wayWords } = arena.shape
    const newest = way < 0 ? 0 : arena.words[waysAt + way * wayWords + TICK]!
    const isOwnCell = way >= 0 && this.#keyOf(arena, way) === key
    const effectTick = Math.max(Math.floor(nowMs / GRANULE_MS), newest)
    return { key, cost, limit, outcome, tick, nowMs, isOwnCell, effectTick }
  }

  #engine(now: () => number, arena = this.#arenas[0]): InlineEngine {
    return new this.#built.InlineEngine(arena, 'default', { now })
  }

  /**
   * A fingerprint that the table maps to the wanted sets: it multiplies and shifts the halves
   * (`memory/table.ts`).
   */
  #fingerprintOf(key: number): Fingerprint {
    const { sets } = this.#arenas[0].shape
    const [first, second] = this.scenario.homes?.[key] ?? [0, 1]
    const step = (second - first - 1 + sets) % sets
    const lo = Math.ceil((first / sets) * 2 ** 32) + 64 * key
    const hi = (sets === 2 ? 0 : Math.ceil((step / (sets - 1)) * 2 ** 32) + ~HASH) + 128 * key
    return { lo: lo | 0, hi: hi & HASH }
  }
}

/** The arenas of the scenario's rules, in one buffer. */
function arenasFor(built: Built, scenario: Scenario): Arenas {
  const { edge = 'strict', onFull = 'evict', ways = 2, sums = 'linear', further } = scenario
  const rules = [scenario, ...(further ?? [])].map(({ limit = 1, buckets = 1 }, i) => {
    return { name: `rule ${i}`, limit, windowMs: buckets * GRANULE_MS, buckets, edge }
  }) as [CheckedRule, ...CheckedRule[]]
  const keys = keysFor(built, rules[0], ways)
  return further === undefined
    ? [built.createArena(rules[0], keys, onFull, 0, sums)]
    : built.createArenas(rules, keys, onFull, 0)
}

/** The `maxKeys` for which a table has this number of sets: a table is sized for 80 % load. */
function keysFor(built: Built, rule: Parameters<Built['createArena']>[0], sets: number): number {
  for (let keys = 1; keys <= 64 * sets; keys++) {
    if (built.createArena(rule, keys, 'evict', 0).shape.sets === sets) return keys
  }
  throw new Error(`no table has ${sets} sets`)
}
