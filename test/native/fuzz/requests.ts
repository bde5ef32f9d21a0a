// Random calls of `serveRequests`.
import { inspect } from 'node:util'
import { HEADER } from '#millrace/memory/layout.js'
import {
  COST,
  HI,
  LO,
  OP,
  Op,
  requestOf,
  SLOT_WORDS,
  SLOTS,
  SLOTS_AT,
} from '#millrace/memory/request-ring.js'
import type { Addon } from '#millrace/native/addon.js'
import { PARAM } from '#millrace/native/native-params.js'
import { anyCurrent, playOn } from './arena.js'
import { NUMBERS, type Values } from './values.js'

const RING_WORDS = SLOTS_AT + SLOTS * SLOT_WORDS
const BESIDE = 64
const MOST_REQUESTS = 100

export class RequestCalls {
  calls = 0
  served = 0
  readonly #serve: (...args: unknown[]) => unknown
  readonly #values: Values
  /** Memory that another thread writes to. */
  readonly #raced: SharedArrayBuffer
  readonly #ring = new SharedArrayBuffer(4 * (RING_WORDS + BESIDE))

  constructor(addon: Addon, values: Values, raced: SharedArrayBuffer) {
    this.#serve = addon.serveRequests as (...args: unknown[]) => unknown
    this.#values = values
    this.#raced = raced
  }

  /** Makes a call. Returns a complaint, or undefined if the result was right. */
  call(): string | undefined {
    this.calls++
    const values = this.#values
    const isRaced = values.chance(0.2)
    const { call: played, beside, given } = playOn(values, isRaced ? this.#raced : undefined)
    const words = played.words as Int32Array
    const params = played.params as Float64Array
    const from = values.chance(0.2) ? 2 ** 31 - 1 - values.below(50) : values.below(3_000)
    const count = values.below(MOST_REQUESTS)
    this.#request(played.fingerprints as Int32Array, from, count)
    words[HEADER.CURRENT] = anyCurrent(values, given.record, 1 + values.below(40))
    params[PARAM.FROM] = from
    params[PARAM.TO] = (from + count) | 0
    if (values.chance(0.9)) params[PARAM.IS_SMOOTH] = 0
    const args: unknown[] = [words, new Int32Array(this.#ring, 0, RING_WORDS), params]
    const isAnything = values.chance(0.1)
    const isRight = !isAnything && values.chance(0.9)
    if (isAnything) args[values.below(3)] = values.any()
    else if (!isRight) params[values.below(params.length)] = values.of(NUMBERS)
    try {
      const stopped = this.#serve(...args)
      const served = ((stopped as number) - params[PARAM.FROM]!) | 0
      if (!isAnything && !isRaced && !(served >= 0 && served <= SLOTS))
        return `stopped at ${inspect(stopped)}`
      this.served += served > 0 ? served : 0
      if (isRight && !isRaced && served > 0 && given.isOutdated)
        return 'served by a record that is not the present one'
    } catch (error) {
      if (!(error instanceof TypeError || error instanceof RangeError))
        return `threw ${inspect(error)} of ${inspect(args)}`
    }
    if (new Int32Array(this.#ring, 4 * RING_WORDS).some((word) => word !== 0)) return 'wrote after the ring'
    if (!isAnything && beside.some((side) => side.some((word) => word !== 0))) return 'wrote beside the arena'
    return isRight && !isRaced ? given.changedOther() : undefined
  }

  #request(fingerprints: Int32Array, from: number, count: number): void {
    const values = this.#values
    const ring = new Int32Array(this.#ring)
    const keys = fingerprints.length / 2
    for (let i = from; i !== from + count; i++) {
      const request = requestOf(SLOTS_AT + (i & (SLOTS - 1)) * SLOT_WORDS)
      const key = values.below(Math.max(1, keys))
      ring[request + OP] = values.chance(0.98) ? Op.CHECK : values.word()
      ring[request + LO] = fingerprints[2 * key] ?? values.word()
      ring[request + HI] = fingerprints[2 * key + 1] ?? values.word()
      ring[request + COST] = values.chance(0.95) ? 1 + values.below(3) : values.word()
    }
  }
}
