// Limiters of several rules: inline in memory, inline in a shared file, or on a pool.
import { createLimiter, type ErrorCode, manualClock, type RulesEngineOptions } from 'millrace'
import { test as any } from 'uvu'
import { createLimiterOn } from '#millrace/create.js'
import { assertRejects, START_MS } from '../limiter/support.js'
import { test as withAddon } from '../native/addon-test.js'
import { folder } from '../shared-file/processes.js'
import type { Either } from './both.js'

/** The memory and the engine of a limiter. The threads of a pool read the machine's file clock. */
export const PLACES = ['memory', 'file', 'pool'] as const
export type Place = (typeof PLACES)[number]

/** A limiter, and the clock that the test sets. */
export interface Several<T extends Either = Either> {
  readonly limiter: T
  readonly clock: { advance(ms: number): void; now(): number }
}

/** Claims about limiters of several rules, by their names. */
export type Claims = Readonly<Record<string, (several: Several) => Promise<void>>>

export const BURST = { name: 'burst', limit: 5, window: '10s', granularity: '1s' } as const
export const HOURLY = { name: 'hourly', limit: 12, window: '1h', granularity: '1m' } as const

/** The milliseconds after which a charge at the start has left the window of each rule. */
export const BURST_MS = 11_000 - (START_MS % 1_000)
export const HOURLY_MS = 61 * 60_000 - (START_MS % 60_000)

/** After this many milliseconds, no charge of the burst limit counts. */
export const FREE_MS = 11_000

const at = folder()
let files = 0

type Options = Partial<Omit<RulesEngineOptions<'inline'>, 'engine' | 'pool'>>

/** A limiter of 5 in 10 seconds and 12 in an hour, or of other rules. */
export function severalIn(place: Place, options: Options = {}): Several {
  const all = { rules: [BURST, HOURLY], maxKeys: 20, ...options }
  if (place !== 'file') {
    const clock = manualClock(START_MS)
    if (place === 'memory') return { clock, limiter: createLimiter({ ...all, clock }) }
    const pool = { minThreads: 2, maxThreads: 2 }
    return { clock, limiter: createLimiter({ ...all, clock, engine: 'pool', pool }) }
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

/** Tests every claim in every place. */
export function testInAll(claims: Claims, options: Options = {}): void {
  for (const [claim, verify] of Object.entries(claims)) {
    for (const place of PLACES) {
      const test = place === 'file' ? withAddon : any
      test(`${place}: ${claim}`, async () => {
        const several = severalIn(place, options)
        try {
          await verify(several)
        } finally {
          await several.limiter.close()
        }
      })
    }
  }
  any.run()
}

/** The units that the key has used, by each rule. */
export function usageOf(limiter: Either, key = 'key'): Promise<number[]> {
  const usages = limiter.rules.map(({ name }) => limiter.usage(key, undefined, { rule: name }))
  return Promise.all(usages)
}

/** Uses the whole hourly limit, and leaves the burst limit free. */
export async function exhaustHourly({ limiter, clock }: Several): Promise<void> {
  for (const cost of [5, 5, 2]) {
    const { allowed } = await limiter.check('key', cost)
    if (!allowed) throw new Error('the hourly limit is used already')
    clock.advance(FREE_MS)
  }
}

/** Asserts that a call throws or rejects, with an error that names the option and what it expects. */
export const raised = (act: () => unknown, code: ErrorCode, option: string) =>
  assertRejects(async () => act(), code, option)
