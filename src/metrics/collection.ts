import { onClosing } from '../core/closing.js'
import { DECIDERS, onStoreCall } from '../core/store-calls.js'
import { STORE_DURATION } from './metric-table.js'
import { Registered, shown } from './registered.js'
import { AllSeries, type Samples, Totals } from './series.js'
import type { Counting, Labels } from './stats.js'

/** Hears of each call of a store, with the labels that it counts by. */
export type CallListener = (labels: Labels, ms: number) => void

/**
 * Limiters by their names, and what they have counted. Counters never fall: those of a limiter stay when it is closed or
 * taken out, and the next limiter of that name goes on from there. What is of the present goes at once.
 */
export class Collection {
  readonly #open = new Map<string, Registered[]>()
  /** Taken out or closed, and not done yet: how many answers are awaited. */
  readonly #leaving = new Map<Registered, number>()
  /** Those that were taken out while they were open, by what counts. They may come back. */
  readonly #outside = new WeakMap<object, Registered[]>()
  readonly #series = new AllSeries()
  readonly #past = new Totals(this.#series, true)
  /** For what a limiter that calls stores is registered; undefined: for nothing. */
  #callers = new WeakMap<object, Registered | undefined>()
  #endListening: (() => void) | undefined
  #reading: Promise<void> | undefined
  /** Called with each call of a store. */
  onCall: CallListener = () => {}

  get isEmpty(): boolean {
    return this.#open.size === 0
  }

  has(name: string): boolean {
    return this.#open.has(name)
  }

  /** Adds a limiter. If it is there already, it counts once. */
  add(name: string, counting: Counting): void {
    const present = this.#find(name, counting)
    if (present !== undefined) {
      present.uses++
      return
    }
    this.#listen()
    const registered = this.#comingBack(name, counting) ?? new Registered(name, counting)
    this.#open.set(name, [...(this.#open.get(name) ?? []), registered])
    this.#callers = new WeakMap()
  }

  /** Takes a limiter out again. Resolves when its last numbers have been read. */
  async end(name: string, counting: Counting): Promise<void> {
    const registered = this.#find(name, counting)
    if (registered === undefined || --registered.uses > 0) return
    registered.readNow()
    this.#outside.set(counting, [...(this.#outside.get(counting) ?? []), registered])
    const last = registered.isReadNow ? undefined : registered.read()
    this.#leave(registered, last)
    await last
  }

  /** Reads all counts, for {@link present}. */
  read(): Promise<void> {
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  /** Reads the counts that are known at once, such as when the thread ends. */
  readNow(): void {
    for (const registered of this.#all()) registered.readNow()
  }

  /** What was read. */
  present(): Samples {
    const open = this.#all().map(({ samples }) => samples)
    const leaving = Array.from(this.#leaving.keys(), ({ counters }) => counters)
    return this.#series.together([...open, ...leaving, this.#past.present()])
  }

  /** Forgets counters that were handed over to another place, which has them now. */
  handOver(counters: Samples): void {
    this.#past.add(counters, -1)
  }

  async #readAll(): Promise<void> {
    const reading = this.#all().map(async (registered) => {
      if (!(await registered.read())) this.#leave(registered, undefined)
    })
    await Promise.all(reading)
  }

  #all(): Registered[] {
    return [...this.#open.values()].flat()
  }

  #find(name: string, counting: Counting): Registered | undefined {
    return this.#open.get(name)?.find((registered) => registered.counting === counting)
  }

  #listen(): void {
    if (this.#endListening !== undefined) return
    const ends = [
      onStoreCall((...call) => this.#noteCall(...call)),
      onClosing((limiter, closed) => this.#noteClosing(limiter, closed)),
    ]
    this.#endListening = () => {
      for (const end of ends) end()
      this.#endListening = undefined
    }
  }

  /** Its counts go on from where they were, so the past has them no more. */
  #comingBack(name: string, counting: Counting): Registered | undefined {
    const outside = this.#outside.get(counting) ?? []
    const registered = outside.find((each) => each.name === name)
    if (registered === undefined) return undefined
    const others = outside.filter((each) => each !== registered)
    this.#outside.set(counting, others)
    if (!this.#leaving.delete(registered)) this.#past.add(registered.counters, -1)
    registered.uses = 1
    return registered
  }

  /** @param last settles when there is more to read */
  #leave(registered: Registered, last: Promise<unknown> | undefined): void {
    const { name } = registered
    const ofName = this.#open.get(name)
    const isOpen = ofName?.includes(registered) === true
    if (!isOpen && !this.#leaving.has(registered)) return
    if (isOpen) {
      const others = ofName.filter((each) => each !== registered)
      if (others.length === 0) this.#open.delete(name)
      else this.#open.set(name, others)
      this.#leaving.set(registered, 0)
      this.#callers = new WeakMap()
    }
    if (last === undefined) {
      this.#settle(registered)
      return
    }
    this.#leaving.set(registered, this.#leaving.get(registered)! + 1)
    const settle = () => {
      const awaited = this.#leaving.get(registered)
      if (awaited === undefined) return
      registered.readNow()
      this.#leaving.set(registered, awaited - 1)
      this.#settle(registered)
    }
    last.then(settle, settle)
  }

  #settle(registered: Registered): void {
    if (this.#leaving.get(registered) !== 0) return
    this.#leaving.delete(registered)
    this.#past.add(registered.counters)
    if (this.isEmpty && this.#leaving.size === 0) this.#endListening?.()
  }

  /** A limiter closes, and with it what it decides for. */
  #noteClosing(limiter: object, closed: Promise<unknown> | undefined): void {
    for (const registered of this.#decidingBy(limiter)) {
      registered.readNow()
      this.#leave(registered, closed)
    }
  }

  #noteCall(limiter: object, store: string, ms: number): void {
    if (!this.#callers.has(limiter)) this.#callers.set(limiter, this.#decidingBy(limiter)[0])
    const registered = this.#callers.get(limiter)
    if (registered === undefined) return
    registered.record(store, ms)
    this.onCall(this.#series.labelsOf(STORE_DURATION, shown({ limiter: registered.name, store })), ms)
  }

  #decidingBy(limiter: object): Registered[] {
    const all = [...this.#all(), ...this.#leaving.keys()]
    return all.filter(({ counting }) => [...decidersOf(counting)].includes(limiter))
  }
}

/** What decides for a registered object: itself, or the limiters of its routes or windows. */
function* decidersOf(counting: object): Iterable<object> {
  yield counting
  const others = (counting as { [DECIDERS]?(): readonly object[] })[DECIDERS]?.() ?? []
  for (const other of others) yield* decidersOf(other)
}
