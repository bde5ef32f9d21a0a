// Plays all interleavings of a few threads on memory of which each does one operation at a time. A thread runs again from
// its beginning for each of its operations, and is told what it was told before.
import { cp, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { BUILT } from '../../explore/copy.js'

const STOP = Symbol('stop')

/** One operation on a word; of a clock, without a word. */
export interface Operation {
  readonly thread: number
  readonly kind: 'load' | 'compareExchange' | 'store' | 'clock'
  readonly index: number
  readonly found: number
  readonly next: number
}

export type Program = () => void

/** What a judge notes while threads run, and what it may complain of. Undone with the memory. */
export interface Judge<Notes> {
  start(): Notes
  /** Called after each new operation. */
  done(notes: Notes, operation: Operation): void
  /** Called when all threads have ended. */
  end(notes: Notes): void
}

export class Stepped<Notes> {
  readonly words: Int32Array
  #nowMs: number
  #notes: Notes | undefined
  readonly #judge: Judge<Notes>
  #thread = 0
  #log: number[] = []
  #at = 0
  #allowed = Number.POSITIVE_INFINITY
  #isPlaying = false

  constructor(words: Int32Array, nowMs: number, judge: Judge<Notes>) {
    this.words = words
    this.#nowMs = nowMs
    this.#judge = judge
  }

  now(): number {
    return this.#do('clock', -1, () => this.#nowMs)
  }

  load(index: number): number {
    return this.#do('load', index, () => this.words[index]!)
  }

  store(index: number, value: number): void {
    this.#do('store', index, () => {
      const before = this.words[index]!
      this.words[index] = value
      return before
    })
  }

  compareExchange(index: number, expected: number, next: number): number {
    return this.#do('compareExchange', index, () => {
      const before = this.words[index]!
      if (before === (expected | 0)) this.words[index] = next
      return before
    })
  }

  #do(kind: Operation['kind'], index: number, act: () => number): number {
    if (!this.#isPlaying) return act()
    if (this.#at < this.#log.length) return this.#log[this.#at++]!
    if (this.#allowed-- === 0) throw STOP
    const found = act()
    this.#log.push(found)
    this.#at++
    const next = index < 0 ? this.#nowMs : this.words[index]!
    this.#judge.done(this.#notes!, { thread: this.#thread, kind, index, found, next })
    return found
  }

  /** Runs a thread for one operation. Returns whether it has ended. */
  #step(thread: number, program: Program, log: number[]): boolean {
    this.#thread = thread
    this.#log = log
    this.#at = 0
    this.#allowed = 1
    this.#isPlaying = true
    try {
      program()
      return true
    } catch (stop) {
      if (stop !== STOP) throw stop
      return false
    } finally {
      this.#isPlaying = false
    }
  }

  /**
   * Plays the threads in every order, and lets the clock go on at every moment, by each of these steps.
   * @param preemptions how often a thread may stop before its end, so that another one goes on
   * @returns how many states there are
   */
  explore(
    programs: readonly Program[],
    stepMs: readonly number[],
    preemptions = Number.POSITIVE_INFINITY,
  ): number {
    this.#notes = this.#judge.start()
    const seen = new Set<string>()
    const logs: number[][] = programs.map(() => [])
    const ended = programs.map(() => false)
    const visit = (current: number, clock: number, left: number): void => {
      const own = [current, clock, left, ...ended, ...this.words, ...logs.map((log) => log.join())]
      const state = own.join('|') + JSON.stringify(this.#notes)
      if (seen.has(state)) return
      seen.add(state)
      if (ended.every((is) => is)) {
        this.#judge.end(this.#notes!)
        return
      }
      const before = { words: this.words.slice(), notes: structuredClone(this.#notes), nowMs: this.#nowMs }
      const back = () => {
        this.words.set(before.words)
        this.#notes = structuredClone(before.notes)
        this.#nowMs = before.nowMs
      }
      if (clock < stepMs.length) {
        this.#nowMs += stepMs[clock]!
        visit(current, clock + 1, left)
        back()
      }
      for (const [thread, program] of programs.entries()) {
        if (ended[thread]) continue
        const preempts = current >= 0 && current !== thread && !ended[current]
        if (preempts && left === 0) continue
        const { length } = logs[thread]!
        ended[thread] = this.#step(thread, program, logs[thread]!)
        visit(thread, clock, preempts ? left - 1 : left)
        logs[thread]!.length = length
        ended[thread] = false
        back()
      }
    }
    visit(-1, 0, preemptions)
    return seen.size
  }
}

export type Edit = readonly [find: string, replace: string]

/** A module of the library on such memory, with texts replaced. */
export async function steppedCopy<T>(
  file: string,
  play: Pick<Stepped<unknown>, 'load' | 'store' | 'compareExchange'>,
  edits: readonly Edit[],
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-stepped-'))
  await cp(BUILT, folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
  let code = await readFile(join(folder, file), 'utf8')
  for (const [find, replace] of edits) {
    if (code.split(find).length !== 2) throw new Error(`${file} does not have once: ${find}`)
    code = code.replace(find, () => replace)
  }
  await writeFile(join(folder, file), code)
  const name = `steppedWords${folder.slice(-6)}`
  Object.assign(globalThis, { [name]: play })
  const words = ['load', 'store', 'compareExchange']
    .map((act) => `export const ${act} = (words, ...args) => globalThis.${name}.${act}(...args)`)
    .join('\n')
  await writeFile(join(folder, 'memory/words.js'), words)
  return import(pathToFileURL(join(folder, file)).href) as Promise<T>
}
