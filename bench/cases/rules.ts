import { createLimiter, group, type KeyHandle, type Limiter } from 'millrace'
import { SIDES, type Side } from '../batches.js'
import { type Benchmark, type Contender, type Effort, ratioOf } from '../benchmark.js'
import { cachedKeys, inOrder, randomOrder } from '../keys.js'
import { LIMIT, WINDOW_MS } from '../peers.js'
import { timeDecisions } from '../timing.js'

const KEYS = 10_000
const HOUR_MS = 3_600_000

const BURST = { name: 'burst', limit: LIMIT, window: WINDOW_MS } as const
const HOURLY = { name: 'hourly', limit: LIMIT, window: HOUR_MS } as const

const twoLimiters = () => [BURST, HOURLY].map((rule) => createLimiter({ ...rule, maxKeys: KEYS }))
const GROUPED = 'a group of two'

/** What decides: one rule, two rules of one limiter, or two limiters of one rule each. */
const LIMITERS = {
  'one rule': () => [createLimiter({ rules: [BURST], maxKeys: KEYS })],
  'two rules': () => [createLimiter({ rules: [BURST, HOURLY], maxKeys: KEYS })],
  'a second check by hand': twoLimiters,
  [GROUPED]: twoLimiters,
} satisfies Record<string, () => Limiter[]>
type Name = keyof typeof LIMITERS

const KINDS = ['string', 'handle'] as const
type Kind = (typeof KINDS)[number]

const workload = ({ operations }: Effort) => ({
  order: randomOrder(KEYS, operations),
  filled: inOrder(KEYS),
})

/** Checks by the first limiter, then by the second, whose refusal takes back the first charge. */
function checkBoth(first: Limiter, second: Limiter, key: string | KeyHandle, other = key): boolean {
  const decision = first.check(key)
  if (!decision.allowed) return false
  if (second.check(other).allowed) return true
  first.refund(decision)
  return false
}

function measureGroup(limiters: Limiter[], kind: Kind, effort: Effort) {
  const [first, second] = limiters as [Limiter, Limiter]
  const both = group({ first, second })
  const textAt = cachedKeys(KEYS)
  const keys = Array.from({ length: KEYS }, (_, i) => {
    const key = textAt(i)
    return kind === 'string' ? [key, key] : [first.handle(key), second.handle(key)]
  })
  const decide = ([own, other]: (string | KeyHandle)[]) => both.check({ first: own!, second: other! }).allowed
  return timeDecisions({ ...workload(effort), keyAt: (index) => keys[index]! }, decide)
}

function measureBy(limiters: Limiter[], kind: Kind, effort: Effort) {
  const [first, second] = limiters as [Limiter, Limiter?]
  const keyAt = cachedKeys(KEYS)
  if (kind === 'string') {
    const decide = (key: string) => (second ? checkBoth(first, second, key) : first.check(key).allowed)
    return timeDecisions({ ...workload(effort), keyAt }, decide)
  }
  const handles = Array.from({ length: KEYS }, (_, i) => limiters.map((each) => each.handle(keyAt(i))))
  if (second === undefined) {
    const decide = (handle: KeyHandle) => first.check(handle).allowed
    return timeDecisions({ ...workload(effort), keyAt: (index) => handles[index]![0]! }, decide)
  }
  const decide = ([own, other]: KeyHandle[]) => checkBoth(first, second, own!, other!)
  return timeDecisions({ ...workload(effort), keyAt: (index) => handles[index]! }, decide)
}

function nameOf(name: Name, kind: Kind, side: Side): string {
  return `${name}, by ${kind}${side === 'addon' ? '' : ', without the addon'}`
}

function contender(name: Name, kind: Kind, side: Side): Contender {
  return {
    name: nameOf(name, kind, side),
    measure(effort) {
      if (side === 'TypeScript') process.env.MILLRACE_NATIVE = SIDES.TypeScript
      const measure = name === GROUPED ? measureGroup : measureBy
      return measure(LIMITERS[name](), kind, effort)
    },
  }
}

const VARIANTS = (['addon', 'TypeScript'] as const).flatMap((side) => KINDS.map((kind) => ({ kind, side })))

export const rules: Benchmark = {
  title: `check over ${KEYS.toLocaleString('en')} hot keys in random order by one and by two rules`,
  units: { ns: 'nanoseconds per decision' },
  contenders: VARIANTS.flatMap(({ kind, side }) =>
    (Object.keys(LIMITERS) as Name[]).map((name) => contender(name, kind, side)),
  ),
  goals: VARIANTS.flatMap(({ kind, side }) => {
    const label = `by ${kind}${side === 'addon' ? '' : ', without the addon'}`
    const [one, two, byHand, grouped] = (Object.keys(LIMITERS) as Name[]).map((name) =>
      nameOf(name, kind, side),
    )
    return [
      { label: `two rules / one rule, ${label}`, unit: 'x', value: ratioOf(two!, one!), atMost: 1.8 },
      { label: `a second check by hand / two rules, ${label}`, unit: 'x', value: ratioOf(byHand!, two!) },
      {
        label: `a group of two / a second check by hand, ${label}`,
        unit: 'x',
        value: ratioOf(grouped!, byHand!),
      },
    ]
  }),
}
