// Limiters of several rules, in memory or in a shared file, on a clock that the test turns.
import { createLimiter, type Limiter, manualClock, type RulesLimiterOptions } from 'millrace'
import { createLimiterOn } from '#millrace/create.js'
import { START_MS } from '../limiter/support.js'
import { folder } from '../shared-file/processes.js'

export const PLACES = ['memory', 'file'] as const
export type Place = (typeof PLACES)[number]

/** A limiter and its clock, which also makes limiters on the same counts where these are in a file. */
export interface Several {
  readonly limiter: Limiter
  readonly clock: { advance(ms: number): void; now(): number }
}

export const BURST = { name: 'burst', limit: 5, window: '10s', granularity: '1s' } as const
export const HOURLY = { name: 'hourly', limit: 12, window: '1h', granularity: '1m' } as const

const at = folder()
let files = 0

/** A limiter of 5 in 10 seconds and 12 in an hour, or of other rules. */
export function severalIn(place: Place, options: Partial<RulesLimiterOptions> = {}): Several {
  const all: RulesLimiterOptions = { rules: [BURST, HOURLY], maxKeys: 20, ...options }
  if (place === 'memory') {
    const clock = manualClock(START_MS)
    return { clock, limiter: createLimiter({ ...all, clock }) }
  }
  let nowMs = START_MS
  const clock = {
    now: () => nowMs,
    advance(ms: number) {
      nowMs += ms
    },
  }
  const machine = {
    bootId: () => Int32Array.of(1, 2, 3, 4),
    monotonicMs: clock.now,
    wallMs: clock.now,
    wallErrorMs: () => 0,
  }
  return { clock, limiter: createLimiterOn(machine, { ...all, shared: { file: at(`several ${++files}`) } }) }
}
