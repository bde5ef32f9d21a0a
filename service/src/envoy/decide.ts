// Decides the counted keys of a request: together, all or nothing, or each by itself.
import type { Decision, RuleDecision } from 'millrace'
import { Together } from 'millrace/internal'
import { isUndecided, ServiceError } from '../http/problem.js'
import type { Counted } from './plan.js'

/** What was decided of a key. */
export type Verdict = Pick<RuleDecision, 'allowed' | 'remaining' | 'retryAfterMs' | 'resetMs' | 'shadow'>

type Decided<T> = T | Promise<T>

/** @throws ServiceError 503 if a store is away */
export type Decide = (counted: readonly Counted[]) => Decided<readonly Verdict[]>

/** What nobody has decided. It is never over the limit. */
const undecided = (mayBeCharged?: boolean): ServiceError =>
  new ServiceError(
    503,
    'ERR_MILLRACE_UNDECIDED',
    'The store does not answer, so nobody has decided.',
    mayBeCharged === undefined ? {} : { mayBeCharged },
  )

function decisionOf(decision: Decision): Verdict {
  if (isUndecided(decision)) throw undecided()
  return decision
}

const ask = (method: 'check' | 'peek', { shape, key, cost, limit }: Counted): Decided<Verdict> => {
  const decided = shape.limiter[method](key, Math.max(1, cost), { limit })
  return decided instanceof Promise ? decided.then(decisionOf) : decisionOf(decided)
}

const all = (verdicts: readonly Decided<Verdict>[]): Decided<readonly Verdict[]> =>
  verdicts.some((verdict) => verdict instanceof Promise)
    ? Promise.all(verdicts)
    : (verdicts as readonly Verdict[])

const then = <T, U>(value: Decided<T>, next: (value: T) => Decided<U>): Decided<U> =>
  value instanceof Promise ? value.then(next) : next(value)

/**
 * Each by itself: one that is refused leaves the charges of the others. What is refused of several hits uses up what is
 * left, as it does where counts go beyond the limit.
 */
export const decideEach: Decide = (counted) =>
  all(
    counted.map((each) =>
      then(ask(each.cost === 0 ? 'peek' : 'check', each), (verdict) => {
        if (each.cost <= 1 || verdict.remaining === 0 || isAdmitted(verdict)) return verdict
        const charged = each.shape.limiter.penalize(each.key, Math.min(verdict.remaining, each.limit))
        const used = { ...figuresOf(verdict), remaining: 0 }
        return charged instanceof Promise ? charged.then(() => used) : used
      }),
    ),
  )

const isAdmitted = ({ allowed, shadow }: Verdict): boolean => shadow?.allowed ?? allowed

const figuresOf = ({ allowed, remaining, retryAfterMs, resetMs, shadow }: Verdict): Verdict => ({
  allowed,
  remaining,
  retryAfterMs,
  resetMs,
  shadow,
})

/** All or nothing: a request that one key refuses charges none. */
export function decideTogether(): Decide {
  const together = new Together()
  const charge = (counted: readonly Counted[]): Decided<readonly Verdict[]> => {
    const [first] = counted
    if (first === undefined) return []
    if (counted.length === 1) return all([ask('check', first)])
    const requests = counted.map(({ shape, ...own }) => ({ ...own, limiter: shape.limiter }))
    return then(together.decide(requests), ({ allowed, source, parts }) => {
      if (!allowed && (source === 'outage' || source === 'config')) throw undecided()
      return parts
    })
  }
  return (counted) => {
    const probes = counted.filter(({ cost }) => cost === 0)
    if (probes.length === 0) return charge(counted)
    const charged = counted.filter(({ cost }) => cost > 0)
    return then(all(probes.map((each) => ask('peek', each))), (seen) => {
      const isRefused = seen.some(({ allowed }) => !allowed)
      const others = isRefused ? all(charged.map((each) => ask('peek', each))) : charge(charged)
      return then(others, (decided) => {
        const byKey = new Map<Counted, Verdict>()
        for (const [i, each] of probes.entries()) byKey.set(each, seen[i]!)
        for (const [i, each] of charged.entries()) byKey.set(each, decided[i]!)
        return counted.map((each) => byKey.get(each)!)
      })
    })
  }
}
