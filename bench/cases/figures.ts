import { createLimiter, type Decision, type Limiter } from 'millrace'
import { SIDES } from '../batches.js'
import { type Benchmark, type Contender, type Effort, ratioOf } from '../benchmark.js'
import { cachedKeys, inOrder, randomOrder } from '../keys.js'
import { LIMIT, WINDOW_MS } from '../peers.js'
import { type Decide, timeDecisions } from '../timing.js'

const KEYS = 10_000
const ADDON = ''
const TYPESCRIPT = ', without the addon'

const workload = ({ operations }: Effort) => ({
  keyAt: cachedKeys(KEYS),
  order: randomOrder(KEYS, operations),
  filled: inOrder(KEYS),
})

/** Reads what a middleware writes into headers. False if a figure can't be right. */
function hasFigures({ remaining, retryAfterMs, resetMs, allowed }: Decision): boolean {
  return remaining >= 0 && resetMs > 0 && retryAfterMs > 0 !== allowed
}

/** What is done with each decision. The second is true for the same decisions as the first. */
const READS = {
  'check alone': (limiter: Limiter): Decide<string> => {
    return (key) => limiter.check(key).allowed
  },
  'check, all figures read': (limiter: Limiter): Decide<string> => {
    return (key) => {
      const decision = limiter.check(key)
      if (!hasFigures(decision)) throw new Error(`wrong figures: ${JSON.stringify(decision)}`)
      return decision.allowed
    }
  },
} as const

type Read = keyof typeof READS

/** The limits: so large that all are admitted, or so small that all are refused. */
const LIMITS = { admitted: LIMIT, refused: 1 } as const
type Kind = keyof typeof LIMITS

const nameOf = (read: Read, kind: Kind, side: string) => `${read}, ${kind}${side}`

function contender(read: Read, kind: Kind, side: string): Contender {
  return {
    name: nameOf(read, kind, side),
    measure(effort) {
      if (side === TYPESCRIPT) process.env.MILLRACE_NATIVE = SIDES.TypeScript
      const limiter = createLimiter({ limit: LIMITS[kind], window: WINDOW_MS, maxKeys: KEYS })
      return timeDecisions(workload(effort), READS[read](limiter), kind === 'refused' ? 0 : undefined)
    },
  }
}

const SIDES_OF = [ADDON, TYPESCRIPT]
const KINDS = ['admitted', 'refused'] as const
const VARIANTS = KINDS.flatMap((kind) => SIDES_OF.map((side) => ({ kind, side })))

export const figures: Benchmark = {
  title: `check(key) over ${KEYS.toLocaleString('en')} hot keys, cached strings: alone, and with all figures read`,
  units: { ns: 'nanoseconds per decision' },
  contenders: VARIANTS.flatMap(({ kind, side }) =>
    (Object.keys(READS) as Read[]).map((read) => contender(read, kind, side)),
  ),
  goals: VARIANTS.map(({ kind, side }) => ({
    label: `all figures read / check alone, ${kind}${side}`,
    unit: 'x' as const,
    value: ratioOf(nameOf('check, all figures read', kind, side), nameOf('check alone', kind, side)),
    ...(kind === 'admitted' && side === ADDON && { atMost: 1.5 }),
  })),
}
