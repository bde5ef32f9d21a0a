import type { Arena } from '../memory/records.js'
import { type Addon, addonForArena, type ChosenAddon } from './addon.js'
import { type NativeParams, PARAM, paramsFor } from './native-params.js'

/**
 * TypeScript serves fewer requests than this, unless MILLRACE_NATIVE is 1. A call costs as much as two or
 * three replies.
 */
const LEAST_REQUESTS = 4

/** Serves the CHECK requests of a request ring in the addon, as long as it admits them. */
export class NativeRequestServer {
  /** The fewest requests that are worth a call. */
  readonly least: number
  readonly #addon: Addon
  readonly #words: Int32Array
  readonly #ring: Int32Array
  readonly #params: NativeParams

  /** Returns undefined if there is no addon, or if the edge is smooth, which it does not support here. */
  static for(chosen: ChosenAddon, arena: Arena, ring: Int32Array): NativeRequestServer | undefined {
    const addon = arena.edge === 'smooth' ? undefined : addonForArena(chosen, arena)
    return addon && new NativeRequestServer(addon, arena, ring, chosen.handlesAll ? 1 : LEAST_REQUESTS)
  }

  constructor(addon: Addon, arena: Arena, ring: Int32Array, least: number) {
    this.#addon = addon
    this.#words = arena.words
    this.#ring = ring
    this.#params = paramsFor(arena)
    this.least = least
  }

  /**
   * Serves the requests from cursor `from` to before cursor `to`. Returns the first request that it did not
   * serve; all before that one were admitted and charged.
   */
  serve(from: number, to: number, nowMs: number): number {
    const params = this.#params
    params[PARAM.FROM] = from
    params[PARAM.TO] = to
    params[PARAM.NOW_MS] = nowMs
    return this.#addon.serveRequests(this.#words, this.#ring, params)
  }
}
