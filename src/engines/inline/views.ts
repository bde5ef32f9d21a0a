import { createRequire } from 'node:module'
import type { Algorithm } from '../../algorithms/algorithm.js'
import type { BlockBound } from '../../algorithms/block-bound.js'
import type { CellView, CellViews, Conversion } from '../../algorithms/conversion.js'
import { algorithmFor } from '../../algorithms/select.js'
import type { Clock } from '../../core/clock.js'
import { Outcome } from '../../core/inline-decision.js'
import { lazily } from '../../core/lazily.js'
import { Reading } from '../../core/reading.js'
import { Ticks } from '../../core/ticks.js'
import { again } from '../../core/tries.js'
import { Insertion } from '../../memory/insertion.js'
import { HEADER, TICK } from '../../memory/layout.js'
import { PresentRule } from '../../memory/limit.js'
import type { Arena } from '../../memory/records.js'
import { arenaBy, endOfRecord, isCurrent, recordIn } from '../../memory/records.js'
import { Table } from '../../memory/table.js'
import { load } from '../../memory/words.js'
import { unlessDamaged } from '../damage.js'

const require = createRequire(import.meta.url)
const conversions = lazily(
  () => require('../../algorithms/conversion.js') as typeof import('../../algorithms/conversion.js'),
)
const blockBounds = lazily(
  () => require('../../algorithms/block-bound.js') as typeof import('../../algorithms/block-bound.js'),
)

const calendarTicks = lazily(
  () => require('../../memory/calendar-ticks.js') as typeof import('../../memory/calendar-ticks.js'),
)

/** How this thread counts by the present record. */
export interface View extends CellView {
  /** The arena by this record. */
  readonly arena: Arena
  readonly table: Table
  readonly insertion: Insertion
  /** Undefined by the first record: there are no cells of others. */
  readonly conversion: Conversion | undefined
}

/** How one thread counts by each record of an arena. Others than the present one are for cells of that record. */
export class Views implements CellViews {
  /** The reading of the present view. It stays when the view changes. */
  readonly reading: Reading
  readonly #arena: Arena
  readonly #clock: Clock
  readonly rule: PresentRule
  readonly #onChange: (view: View) => void
  /** Called after a change of the record, in the middle of an operation. */
  onRecord = () => {}
  /**
   * Whether the keys that are looked up now are ledgers (`policies/carry-over.ts`). All units that are still in a cell
   * at rest count when its window becomes longer. A ledger must not count what the cell of its key may have lost.
   */
  isLedger = false
  #others: Map<number, CellView> | undefined
  #present: View

  /** `onChange` is called after a change of the record. */
  constructor(arena: Arena, clock: Clock, onChange: (view: View) => void) {
    this.#arena = arena
    this.#clock = clock
    this.#onChange = onChange
    const ticks = ticksOf(arena)
    this.reading = new Reading(clock, ticks)
    this.#present = this.#viewOf(arena, ticks)
    this.rule = new PresentRule(arena.words, arena.shape.record, (record) => this.#take(record))
  }

  get present(): View {
    return this.#present
  }

  /** Not if something else has written to the rule. */
  isOutdated(): boolean {
    const { words, shape } = this.#present.arena
    const current = load(words, HEADER.CURRENT)
    const record = recordIn(current)
    return record !== shape.record && isCurrent(words, current) && this.of(record) !== undefined
  }

  refresh(): boolean {
    const before = this.#present
    this.rule.readLimit()
    return this.#present !== before
  }

  /**
   * The key's way, or -1. If the key has a cell of another record, converts it first. If the rule has changed,
   * goes on with the present one first.
   */
  findLive(lo: number, hi: number): number {
    for (let tries = 0; ; tries = again(tries)) {
      this.refresh()
      const way = this.#present.table.findLive(lo, hi)
      if (way >= 0 || !this.#isToLookAgain(lo, hi)) return way
    }
  }

  /** Whether the key has been found under another record, or the record has changed. */
  #isToLookAgain(lo: number, hi: number): boolean {
    const { conversion } = this.#present
    return conversion === undefined ? this.refresh() : conversion.find(lo, hi)
  }

  /**
   * The key's way, or -1, also if the memory is damaged. The way's admission word and tick are copied to the
   * algorithm's `last...` fields.
   */
  lookUp(lo: number, hi: number): number {
    return unlessDamaged(this.#arena.words, -1, () => {
      for (let tries = 0; ; tries = again(tries)) {
        const way = this.findLive(lo, hi)
        if (way < 0 || this.#present.algorithm.observe(way, lo, hi)) return way
      }
    })
  }

  /**
   * The units that the key has used in the last `lastMs`, by the reading that the caller has taken. If the memory is
   * damaged: the limit, as the key is refused.
   */
  usage(lo: number, hi: number, lastMs: number): number {
    const { reading } = this
    return this.#usage(lo, hi, (base) => {
      return this.#present.algorithm.estimates.usedInLast(base, reading, lastMs)
    })
  }

  #usage(lo: number, hi: number, usedIn: (base: number) => number): number {
    return unlessDamaged(this.#arena.words, this.rule.readLimit(), () => {
      for (let tries = 0; ; tries = again(tries)) {
        const way = this.findLive(lo, hi)
        if (way < 0) return 0
        const { algorithm, table } = this.#present
        const used = usedIn(algorithm.base(way))
        if (table.isLive(way, lo, hi)) return used // another thread may have converted the cell meanwhile
      }
    })
  }

  /**
   * The reading by which the key's cell still has all units of the last `lastMs`: the one that the caller has taken,
   * or an earlier one if the window is shorter than that. Then units that have left it are still in a cell at rest.
   */
  heldMs(lo: number, hi: number, lastMs: number): number {
    const way = unlessDamaged(this.#arena.words, -1, () => this.findLive(lo, hi))
    const { algorithm, arena, reading } = this.#present
    if (way < 0 || lastMs <= reading.ticks.windowMs) return reading.nowMs
    const tick = load(arena.words, algorithm.base(way) + TICK)
    return conversions().heldMs(this.#present, tick, reading.nowMs, lastMs)
  }

  /**
   * The units that the key has used in the last `lastMs`, seen at the earlier reading `atMs`. If the window is shorter
   * than that, those that longer windows of before still count, too.
   */
  usageAt(lo: number, hi: number, lastMs: number, atMs: number): number {
    const { nowMs } = this.reading
    return this.#usage(lo, hi, (base) => {
      const { algorithm, conversion, reading } = this.#present
      const { clock, ticks } = reading
      const held = new Reading(clock, ticks)
      held.set(atMs)
      const ms = Math.max(0, atMs - (nowMs - lastMs))
      if (conversion === undefined) return algorithm.estimates.usedInLast(base, held, ms)
      const fromMs = lastMs > ticks.windowMs ? nowMs - lastMs : undefined
      return conversion.past.used(base, { algorithm, reading: held }, ms, fromMs, nowMs)
    })
  }

  /** Whether a way that `lookUp` has returned is blocked. */
  isBlocked(way: number): boolean {
    const { algorithm, reading } = this.#present
    return way >= 0 && algorithm.isBlocked(algorithm.base(way), algorithm.lastAdm, reading.nowMs)
  }

  /**
   * The outcome of a decision on a way that `lookUp` has returned, or on a new key, if it charged nothing.
   * OUTDATED: another thread has converted the cell meanwhile, or the way has another key.
   */
  outcomeOf(found: number, lo: number, hi: number, cost: number, limit: number): Outcome {
    const { algorithm, arena, insertion, reading, table } = this.#present
    let way = found
    if (this.isBlocked(way) || cost > limit) return Outcome.REFUSED
    if (way < 0) {
      if (cost === 0) return Outcome.UNCOUNTED
      way = insertion.choose(lo, hi)
      if (way < 0) return arena.onFull === 'allow' ? Outcome.UNCOUNTED : Outcome.NO_ROOM
    }
    // The total errs high, so a cost that fits with it needs no sum.
    const fits =
      cost === 0 ||
      (way === found &&
        algorithm.mostUsed(algorithm.lastAdm, algorithm.chargedTick, reading, limit) + cost <= limit) ||
      algorithm.estimates.used(algorithm.base(way), reading, limit) + cost <= limit
    if (way === found && !table.isLive(way, lo, hi)) return Outcome.OUTDATED
    return fits ? Outcome.UNCOUNTED : Outcome.REFUSED
  }

  endOf(record: number): number {
    return endOfRecord(this.#arena, record, this.reading.nowMs)
  }

  /** The view by which a cell of this record counts. */
  of(record: number): CellView | undefined {
    if (record === this.#present.arena.shape.record) return this.#present
    const known = this.#others?.get(record)
    if (known !== undefined) return known
    const arena = arenaBy(this.#arena, record)
    if (arena === undefined) return undefined
    const ticks = ticksOf(arena)
    const view = { algorithm: algorithmFor(arena, ticks), reading: new Reading(this.#clock, ticks) }
    this.#others ??= new Map()
    this.#others.set(record, view)
    return view
  }

  /** Bounds the blocks of a key by the present record. */
  get blockBound(): BlockBound {
    const { algorithm, arena, conversion, table } = this.#present
    const options = { record: arena.shape.record, isOutdated: () => this.isOutdated(), conversion }
    return new (blockBounds().BlockBound)(arena.words, table, algorithm, options)
  }

  #take(record: number): boolean {
    const arena = arenaBy(this.#arena, record)
    if (arena === undefined) return false
    const ticks = ticksOf(arena)
    this.reading.use(ticks)
    this.#present = this.#viewOf(arena, ticks)
    this.#onChange(this.#present)
    this.onRecord()
    return true
  }

  #viewOf(arena: Arena, ticks: Ticks): View {
    const { words, shape, onFull } = arena
    const { reading } = this
    const { record } = shape
    const table = new Table(words, shape)
    const algorithm: Algorithm = algorithmFor(arena, ticks)
    const conversion =
      record === 0 ? undefined : new (conversions().Conversion)(words, shape, arena.originMs, table, this)
    const options = { record, isOutdated: () => this.isOutdated(), onFull, others: conversion }
    const insertion = new Insertion(words, table, algorithm, reading, options)
    return { arena, table, algorithm, reading, insertion, conversion }
  }
}

function ticksOf(arena: Arena): Ticks {
  const { windowMs, buckets, modulus, shift, offsetMs } = arena.shape
  if (arena.align === 'calendar') return new (calendarTicks().CalendarTicks)(arena)
  return new Ticks(windowMs, buckets, modulus, shift, offsetMs)
}
