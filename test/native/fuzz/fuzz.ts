// Random calls of every function of the addon. Each call may decide or throw. It must not write beside the
// arrays, run code of the caller, or end the process. A sanitizer checks more, if one is loaded.
import { inspect } from 'node:util'
import { Worker } from 'node:worker_threads'
import { type Addon, addonFor } from '#millrace/native/addon.js'
import { PARAM, PARAM_COUNT } from '#millrace/native/native-params.js'
import { random } from '../../algorithms/random.js'
import { playOn } from './arena.js'
import { FileCalls } from './files.js'
import { RequestCalls } from './requests.js'
import { SingleCalls } from './single.js'
import { NUMBERS, Values } from './values.js'

export interface Found {
  calls: number
  decided: number
  threw: number
  fileCalls: number
  /** Decisions on one key. */
  single: number
  /** Requests served in rings. */
  served: number
  /** Calls on memory that another thread wrote to. */
  raced: number
  complaints: string[]
}

/** Enough for the largest arena: 5 sets of 16 ways of 262 words. */
const RACED_BYTES = 4 * 36_864
const MOST_COMPLAINTS = 20

const SCRIBBLER = `
  const { workerData } = require('node:worker_threads')
  const words = new Int32Array(workerData)
  const doubles = new Float64Array(workerData)
  for (;;) {
    words[(Math.random() * words.length) | 0] = Math.random() * 2 ** 32
    doubles[(Math.random() * 64) | 0] = [NaN, Infinity, -1, 1e300, 2, 60, 3e9][(Math.random() * 7) | 0]
  }`

export class Fuzz {
  readonly found: Found = {
    calls: 0,
    decided: 0,
    threw: 0,
    fileCalls: 0,
    single: 0,
    served: 0,
    raced: 0,
    complaints: [],
  }
  readonly #values: Values
  readonly #addon: Addon
  readonly #files: FileCalls | undefined
  readonly #single: SingleCalls
  readonly #requests: RequestCalls
  readonly #raced = new SharedArrayBuffer(RACED_BYTES)
  readonly #scribbler: Worker

  constructor(seed: number) {
    this.#values = new Values(random(seed))
    this.#addon = addonFor({ MILLRACE_NATIVE: '1' })!
    if (this.#addon.files !== undefined) this.#files = new FileCalls(this.#addon.files, this.#values)
    this.#single = new SingleCalls(this.#addon, seed, this.#raced)
    this.#requests = new RequestCalls(this.#addon, this.#values, this.#raced)
    this.#scribbler = new Worker(SCRIBBLER, { eval: true, workerData: this.#raced })
    this.#scribbler.unref() // so that a failed test can end
  }

  /** Makes this many calls. */
  play(calls: number): void {
    for (let i = 0; i < calls && this.found.complaints.length < MOST_COMPLAINTS; i++) {
      this.found.calls++
      const kind = this.#values.below(15)
      if (kind < 5) this.#admitOnRandomMemory()
      else if (kind < 7) this.#admitAnything()
      else if (kind < 8) this.#admitOnRacedMemory()
      else if (kind < 10) this.#callFiles()
      else if (kind < 13) this.#callSingle()
      else this.#callRequests()
    }
  }

  async end(): Promise<Found> {
    await this.#scribbler.terminate()
    this.#files?.end()
    return this.found
  }

  /** Valid arguments, but sometimes with one wrong param. */
  #admitOnRandomMemory(): void {
    const values = this.#values
    const { call, beside, given } = playOn(values, values.chance(0.1) ? this.#files?.mapped() : undefined)
    const params = call.params as Float64Array
    const isRight = values.chance(0.8)
    if (!isRight) params[values.below(PARAM_COUNT)] = values.of(NUMBERS)
    const stopped = this.#judge(Object.values(call), params)
    if (beside.some((words) => words.some((word) => word !== 0)))
      this.#complain('wrote beside the arena', call)
    if (!isRight) return
    const changed = given.changedOther()
    if (changed !== undefined) this.#complain(changed, call)
    if (given.isOutdated && stopped !== undefined && stopped !== params[PARAM.FROM])
      this.#complain('decided by a record that is not the present one', call)
  }

  /** Some arguments have a wrong type or length, or are detached; or their number is wrong. */
  #admitAnything(): void {
    const values = this.#values
    const args: unknown[] = Object.values(playOn(values).call)
    for (let wrong = 1 + values.below(3); wrong > 0; wrong--) args[values.below(args.length)] = values.any()
    if (values.chance(0.1)) args.length = values.below(args.length)
    if (values.chance(0.1)) args.push(values.any())
    this.#judge(args)
  }

  /** The arguments are in memory that another thread writes to. */
  #admitOnRacedMemory(): void {
    const values = this.#values
    this.found.raced++
    const { call } = playOn(values)
    const params = call.params as Float64Array
    const memory = this.#raced as unknown as ArrayBuffer
    const entries = (call.allowed as Uint8Array).length
    const racedParams = new Float64Array(memory, 0, PARAM_COUNT)
    racedParams.set(params)
    const words = call.words as Int32Array
    const racedWords = new Int32Array(memory, 0, words.length)
    if (values.chance(0.5)) racedWords.set(words)
    if (values.chance(0.7)) racedParams.set(params)
    this.#judge([
      racedWords,
      values.chance(0.5) ? new Int32Array(memory, 4_096, 2 * entries) : call.fingerprints,
      values.chance(0.5) ? new Float64Array(memory, 8_192, entries) : call.costs,
      new Uint8Array(memory, 16, entries),
      new Float64Array(memory, 64, entries),
      call.seen,
      values.chance(0.5) ? racedParams : params,
      call.remaining,
    ])
  }

  #callFiles(): void {
    if (this.#files === undefined) return
    this.found.fileCalls++
    const wrong = this.#files.call()
    if (wrong !== undefined) this.#complain(wrong, [])
  }

  #callSingle(): void {
    const wrong = this.#single.call()
    this.found.single = this.#single.decided
    if (wrong !== undefined) this.#complain(wrong, [])
  }

  #callRequests(): void {
    const wrong = this.#requests.call()
    this.found.served = this.#requests.served
    if (wrong !== undefined) this.#complain(wrong, [])
  }

  /** Checks the result against `params`, unless another thread writes to them. Returns it. */
  #judge(args: unknown[], params?: Float64Array): unknown {
    try {
      const stopped = (this.#addon.admitMany as (...args: unknown[]) => unknown)(...args)
      this.found.decided++
      const most = params === undefined ? 2 ** 32 : params[PARAM.TO]!
      if (!(Number.isInteger(stopped) && (stopped as number) >= 0 && (stopped as number) <= most)) {
        this.#complain(`returned ${String(stopped)}`, args)
      }
      return stopped
    } catch (error) {
      this.found.threw++
      if (!(error instanceof TypeError || error instanceof RangeError))
        this.#complain(`threw ${inspect(error)}`, args)
      return undefined
    }
  }

  #complain(what: string, args: unknown): void {
    this.found.complaints.push(`call ${this.found.calls}: ${what}: ${inspect(args, { maxArrayLength: 12 })}`)
  }
}

export function summaryOf(found: Found, seed: number, shown: (count: number) => string): string {
  const { calls, decided, threw, fileCalls, single, served, raced, complaints } = found
  return (
    `${shown(calls)} calls, seed ${seed}: ${shown(decided)} decided, ${shown(threw)} refused, ${shown(raced)} on memory that ` +
    `another thread wrote to, ${shown(fileCalls)} of files, ${shown(single)} keys decided singly, ${shown(served)} requests served; ${complaints.length} complaints`
  )
}
