// Calls every function of the addon that decides or counts, on one key.

import { ADM, TICK } from '#millrace/memory/layout.js'
import type { Arena } from '#millrace/memory/records.js'
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
import { addonFor } from '#millrace/native/addon.js'
import {
  CALL,
  CALL_WORDS,
  type NativeParams,
  OPERATION,
  PARAM,
  paramsFor,
  SEEN_WORDS,
  STATUS,
} from '#millrace/native/native-params.js'
import { callsFor } from '#millrace/native/series.js'

export const RING_WORDS = SLOTS_AT + SLOTS * SLOT_WORDS

export interface CalledKey {
  readonly lo: number
  readonly hi: number
  readonly way: number
}

const addon = () => addonFor({ MILLRACE_NATIVE: '1' })!

/** Params of a call on `entries` keys or requests. */
export function paramsOf(arena: Arena, limit: number, nowMs: number, entries = 1): NativeParams {
  const params = paramsFor(arena)
  params[PARAM.LIMIT] = limit
  params[PARAM.TO] = entries
  params[PARAM.NOW_MS] = nowMs
  return params
}

/** Returns the memory of the call. */
function runSingle(
  { words, shape }: Arena,
  params: NativeParams,
  { lo, hi, way }: CalledKey,
  operation: number,
  cost: number,
): Int32Array {
  const call = callsFor(1)
  writeCall(call, operation, lo, hi, cost, way, params)
  const base = shape.waysAt + way * shape.wayWords
  call[CALL.ADM] = words[base + ADM]!
  call[CALL.TICK] = words[base + TICK]!
  addon().single(words, params, call)()
  return call
}

function writeCall(
  call: Int32Array,
  operation: number,
  lo: number,
  hi: number,
  cost: number,
  way: number,
  params: NativeParams,
): void {
  const doubles = new Float64Array(call.buffer, call.byteOffset, CALL.OPERATION / 2)
  doubles[CALL.NOW_MS] = params[PARAM.NOW_MS]!
  doubles[CALL.MS] = operation === OPERATION.USAGE ? params[PARAM.WINDOW_MS]! : params[PARAM.NOW_MS]!
  call[CALL.OPERATION] = operation
  call[CALL.LO] = lo
  call[CALL.HI] = hi
  call[CALL.COST] = cost
  call[CALL.WAY] = way
  call[CALL.LIMIT] = params[PARAM.LIMIT]!
}

/** Decides `count` times on the key in one batch. Returns how many it decided. */
export function runBatch(
  words: Int32Array,
  params: NativeParams,
  { lo, hi }: CalledKey,
  cost: number,
  seen: Int32Array = new Int32Array(SEEN_WORDS * params[PARAM.TO]!),
): number {
  const count = params[PARAM.TO]!
  const fingerprints = Int32Array.from({ length: 2 * count }, (_, i) => (i % 2 === 0 ? lo : hi))
  const [allowed, at] = [new Uint8Array(count), new Float64Array(count)]
  return addon().admitMany(words, fingerprints, cost, allowed, at, seen, params)
}

/** Serves `count` requests of the key, of one unit each. Returns how many it served. */
export function runRequests(
  words: Int32Array,
  params: NativeParams,
  { lo, hi }: CalledKey,
  ring: Int32Array = new Int32Array(new SharedArrayBuffer(4 * RING_WORDS)),
): number {
  const count = params[PARAM.TO]!
  for (let i = 0; i < count; i++) {
    const request = requestOf(SLOTS_AT + i * SLOT_WORDS)
    ring[request + OP] = Op.CHECK
    ring[request + LO] = lo
    ring[request + HI] = hi
    ring[request + COST] = 1
  }
  return addon().serveRequests(words, ring, params)
}

type Answers = (arena: Arena, key: CalledKey, limit: number, nowMs: number) => boolean

const bySingle =
  (operation: number, cost: number): Answers =>
  (arena, key, limit, nowMs) =>
    runSingle(arena, paramsOf(arena, limit, nowMs), key, operation, cost)[CALL.STATUS] !== STATUS.UNANSWERED

const byBatch =
  (cost: number): Answers =>
  (arena, key, limit, nowMs) =>
    runBatch(arena.words, paramsOf(arena, limit, nowMs, 3), key, cost) > 0

/** By name: makes a call, and returns whether the addon answered it. */
export const CALLS: Readonly<Record<string, Answers>> = {
  check: bySingle(OPERATION.CHECK, 1),
  'check within a limit': bySingle(OPERATION.CHECK_WITHIN, 1),
  usage: bySingle(OPERATION.USAGE, 0),
  series: (arena, { lo, hi, way }, limit, nowMs) => {
    const calls = callsFor(2)
    const params = paramsOf(arena, limit, nowMs)
    writeCall(calls.subarray(0, CALL_WORDS), OPERATION.CHECK, lo, hi, 1, way, params)
    calls.copyWithin(CALL_WORDS, 0, CALL_WORDS)
    addon().series([arena.words, arena.words], [params, params], calls)()
    return calls[CALL.STATUS] !== STATUS.UNANSWERED
  },
  batch: byBatch(1),
  'batch of cost 0': byBatch(0),
  'batch of a cost above the limit': byBatch(1_000),
  requests: (arena, key, limit, nowMs) => runRequests(arena.words, paramsOf(arena, limit, nowMs, 3), key) > 0,
}

/** Answers only about a cell that has not changed since a refusal. */
export const retryAfter = bySingle(OPERATION.RETRY_AFTER, 1)

/** The tick in which the addon charges the key. */
export function chargedTick(arena: Arena, key: CalledKey, limit: number, nowMs: number): number {
  return runSingle(arena, paramsOf(arena, limit, nowMs), key, OPERATION.CHECK_WITHIN, 1)[CALL.TICK]!
}
