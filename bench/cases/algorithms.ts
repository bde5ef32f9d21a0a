import { createLimiter, manualClock, type RuleOptions } from 'millrace'
import { addonMissing, batchFigures, SIDES, type Side } from '../batches.js'
import { type Benchmark, type Contender, type Effort, type Goal, ratioOf } from '../benchmark.js'
import { cachedKeys, inOrder, randomOrder } from '../keys.js'
import { timeDecisions } from '../timing.js'

const KEYS = 10_000
/** More than any key uses in a run. */
const LIMIT = 200
/** In the full log of a key one of these many units leaves at each second decision. */
const FULL_LIMIT = 1_000
const STEP_MS = 10
/** Keys that are in no cache. */
const BATCH_KEYS = 300_000
const BATCH_SIZE = 4_096

type Choice = Pick<RuleOptions, 'algorithm' | 'align'>

const CHOICES: Readonly<Record<string, Choice>> = {
  'sliding window': { algorithm: 'sliding-window' },
  'sliding log': { algorithm: 'sliding-log' },
  'sliding counter': { algorithm: 'sliding-counter' },
  'fixed window': { algorithm: 'fixed-window' },
  'token bucket': { algorithm: 'token-bucket' },
}
const BASE = 'sliding window'
/** The figures that the addon can make faster. */
const FIGURES = ['admitted', 'string', 'batch'] as const

const workload = ({ operations }: Effort) => ({
  order: randomOrder(KEYS, operations),
  filled: inOrder(KEYS),
})

/** Decisions by handles of keys that have room. */
function admitted(choice: Choice, effort: Effort): number {
  const limiter = createLimiter({ limit: LIMIT, window: '1d', ...choice, maxKeys: KEYS })
  const keyAt = cachedKeys(KEYS)
  const handles = Array.from({ length: KEYS }, (_, i) => limiter.handle(keyAt(i)))
  const timed = { ...workload(effort), keyAt: (index: number) => handles[index]! }
  return timeDecisions(timed, (handle) => limiter.check(handle).allowed).ns!
}

/** The same by strings. */
function byString(choice: Choice, effort: Effort): number {
  const limiter = createLimiter({ limit: LIMIT, window: '1d', ...choice, maxKeys: KEYS })
  return timeDecisions({ ...workload(effort), keyAt: cachedKeys(KEYS) }, (key) => limiter.check(key).allowed)
    .ns!
}

/** Decisions by handles of keys that have used their limit. */
function refused(choice: Choice, effort: Effort): number {
  const limiter = createLimiter({ limit: 1, window: '1d', ...choice, maxKeys: KEYS })
  const keyAt = cachedKeys(KEYS)
  const handles = Array.from({ length: KEYS }, (_, i) => limiter.handle(keyAt(i)))
  const timed = { ...workload(effort), keyAt: (index: number) => handles[index]! }
  return timeDecisions(timed, (handle) => limiter.check(handle).allowed, 0).ns!
}

/** Decisions on one key that is asked for twice its limit, evenly, on a clock that moves for each of them. */
function atTwiceTheLimit(choice: Choice, { operations }: Effort): number {
  const clock = manualClock(1e9)
  const window = 2 * STEP_MS * FULL_LIMIT
  const limiter = createLimiter({ limit: FULL_LIMIT, window, ...choice, maxKeys: 100, clock })
  const handle = limiter.handle('key')
  const decide = () => {
    clock.advance(STEP_MS)
    return limiter.check(handle).allowed
  }
  for (let i = 0; i < 4 * FULL_LIMIT; i++) decide()
  const count = operations / 10
  const start = process.hrtime.bigint()
  let allowed = 0
  for (let i = 0; i < count; i++) if (decide()) allowed++
  const elapsed = process.hrtime.bigint() - start
  if (allowed === 0 || allowed === count) throw new Error(`${allowed} of ${count} were admitted`)
  return Number(elapsed) / count
}

function contender(name: string, side: Side): Contender {
  const choice = CHOICES[name]!
  return {
    name: nameOf(name, side),
    measure(effort) {
      process.env.MILLRACE_NATIVE = SIDES[side]
      const rule = { limit: LIMIT, window: '1d', ...choice } as const
      return {
        admitted: admitted(choice, effort),
        string: byString(choice, effort),
        refused: refused(choice, effort),
        full: atTwiceTheLimit(choice, effort),
        batch: batchFigures(side, BATCH_KEYS, BATCH_SIZE, rule, effort).ns,
      }
    },
  }
}

const nameOf = (name: string, side: Side) => (side === 'addon' ? `${name}, with the addon` : name)

export const algorithms: Benchmark = {
  title: `each algorithm: check(handle) over ${KEYS.toLocaleString('en')} hot keys in random order`,
  units: {
    admitted: 'nanoseconds per decision with room, by handle',
    string: 'nanoseconds per decision with room, by string',
    refused: 'nanoseconds per decision without room, by handle',
    full: `nanoseconds per decision on a key at twice its limit of ${FULL_LIMIT.toLocaleString('en')}`,
    batch: `nanoseconds per admission in batches of ${BATCH_SIZE.toLocaleString('en')} of ${BATCH_KEYS.toLocaleString('en')} keys`,
  },
  contenders: [
    ...Object.keys(CHOICES).map((name) => contender(name, 'TypeScript')),
    ...Object.keys(CHOICES).map((name) => contender(name, 'addon')),
  ],
  unavailable: addonMissing,
  goals: [
    ...Object.keys(CHOICES)
      .filter((name) => name !== BASE)
      .flatMap((name) =>
        (['admitted', 'refused'] as const).map(
          (figure): Goal => ({
            label: `${figure}: ${name} / ${BASE}, both without the addon`,
            unit: 'x',
            value: ratioOf(name, BASE, figure),
            ...(name === 'token bucket' && figure === 'admitted' && { atMost: 0.9 }),
          }),
        ),
      ),
    ...Object.keys(CHOICES).flatMap((name) =>
      FIGURES.map(
        (figure): Goal => ({
          label: `${figure}: ${name}, with the addon / without`,
          unit: 'x',
          value: ratioOf(nameOf(name, 'addon'), name, figure),
        }),
      ),
    ),
  ],
}
