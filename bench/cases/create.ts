import { createLimiter, type Limiter } from 'millrace'
import { SIDES } from '../batches.js'
import { type Benchmark, type Contender, figureOf, type Goal } from '../benchmark.js'
import { LIMIT, WINDOW_MS } from '../peers.js'
import { collectGarbage } from '../timing.js'

const LIMITERS = 100
const PAGE_BYTES = 4_096
const MIB = 2 ** 20

/** Keeps the limiters alive until the measurement has ended. */
const retained: Limiter[] = []

function makeAndUse(): Limiter {
  const limiter = createLimiter({ limit: LIMIT, window: WINDOW_MS })
  if (!limiter.check('key').allowed) throw new Error('the first decision was refused')
  retained.push(limiter)
  return limiter
}

const EMPTY_PAGE = Buffer.alloc(PAGE_BYTES)

/** The pages of the limiter's memory that have been written to, in bytes. */
function writtenBytes(limiter: Limiter): number {
  const { buffer } = limiter.share()
  let written = 0
  for (let from = 0; from < buffer.byteLength; from += PAGE_BYTES) {
    const page = Buffer.from(buffer, from, Math.min(PAGE_BYTES, buffer.byteLength - from))
    if (EMPTY_PAGE.compare(page, 0, page.length, 0, page.length) !== 0) written += PAGE_BYTES
  }
  return written
}

/**
 * Makes limiters and lets each decide once, after a first one, which loads the code. Most of the time is that of code
 * which V8 has not compiled yet.
 */
const making = (name: string, side: keyof typeof SIDES): Contender => ({
  name,
  measure() {
    process.env.MILLRACE_NATIVE = SIDES[side]
    makeAndUse()
    collectGarbage()
    const bytesBefore = process.memoryUsage().rss
    const startMs = performance.now()
    for (let i = 0; i < LIMITERS; i++) makeAndUse()
    const ms = performance.now() - startMs
    const bytes = process.memoryUsage().rss - bytesBefore
    const ofTables = LIMITERS * writtenBytes(retained[0]!)
    return { ms, overTablesMiB: (bytes - ofTables) / MIB }
  },
})

const NAMES = { addon: 'Millrace, addon', typeScript: 'Millrace, TypeScript' }

export const create: Benchmark = {
  title: `${LIMITERS} limiters made and used once, after a first one`,
  units: {
    ms: 'milliseconds in all',
    overTablesMiB: "MiB of resident memory in all, beyond the written pages of the limiters' tables",
  },
  contenders: [making(NAMES.addon, 'addon'), making(NAMES.typeScript, 'TypeScript')],
  goals: Object.values(NAMES).flatMap((name): Goal[] => [
    {
      target: 'P13',
      label: `${name}: the time`,
      unit: 'ms',
      value: (round) => figureOf(round, name, 'ms'),
      atMost: 10,
    },
    {
      target: 'P13',
      label: `${name}: memory beyond the tables`,
      unit: 'MB',
      value: (round) => (figureOf(round, name, 'overTablesMiB') * MIB) / 1e6,
      atMost: (2 * MIB) / 1e6,
    },
  ]),
}
