// From verdicts to the answer of the contract.
import {
  type Code,
  type DescriptorStatus,
  type Header,
  MOST_UINT32,
  OK,
  OVER_LIMIT,
  type RateLimitResponse,
} from './contract.js'
import type { Verdict } from './decide.js'
import type { Plan, Planned } from './plan.js'

/** How a descriptor ended, for metrics. `near`: admitted, and more than 80 % of the limit is used. */
export type Outcome = 'allowed' | 'near' | 'over' | 'shadow'

const NEAR = 0.8

export interface AnswerOptions {
  readonly isShadow: boolean
  /** The names of the headers for the limit, what is left of it, and the seconds until it resets; or none. */
  readonly headers: readonly string[]
  /** Told of each descriptor with a limit. */
  readonly count: (planned: Planned, outcome: Outcome) => void
}

export function answerOf(
  { planned, counted }: Plan,
  verdicts: readonly Verdict[],
  { isShadow, headers, count }: AnswerOptions,
): RateLimitResponse {
  let overallCode: Code = OK
  let tightest: DescriptorStatus | undefined
  const statuses = planned.map((each): DescriptorStatus => {
    if (each.isUnlimited) {
      count(each, 'allowed')
      return { code: OK, limitRemaining: MOST_UINT32 }
    }
    if (each.counted === undefined) return { code: OK, limitRemaining: 0 }
    const verdict = verdicts[counted.indexOf(each.counted)]!
    const status = statusOf(each, verdict)
    count(each, outcomeOf(each, verdict, status))
    if (status.code === OVER_LIMIT) overallCode = OVER_LIMIT
    if (tightest === undefined || isTighter(status, tightest)) tightest = status
    return status
  })
  return {
    overallCode: isShadow ? OK : overallCode,
    statuses,
    responseHeadersToAdd: tightest === undefined ? [] : headersOf(headers, tightest),
  }
}

function statusOf({ isShadow, current, windowMs }: Planned, verdict: Verdict): DescriptorStatus {
  const { allowed, remaining, resetMs } = verdict
  const retryAfterMs = verdict.shadow?.retryAfterMs ?? verdict.retryAfterMs
  const ms = retryAfterMs > 0 ? retryAfterMs : resetMs
  return {
    code: allowed || isShadow ? OK : OVER_LIMIT,
    currentLimit: current!,
    limitRemaining: Math.min(remaining, MOST_UINT32),
    resetMs: Number.isFinite(ms) ? ms : windowMs,
  }
}

function outcomeOf({ isShadow }: Planned, verdict: Verdict, status: DescriptorStatus): Outcome {
  if (status.code === OVER_LIMIT) return 'over'
  if (isShadow && !(verdict.shadow?.allowed ?? verdict.allowed)) return 'shadow'
  const { requestsPerUnit } = status.currentLimit!
  return requestsPerUnit - status.limitRemaining > requestsPerUnit * NEAR ? 'near' : 'allowed'
}

/** A refusal before an admission, then the one with less left. */
const isTighter = (a: DescriptorStatus, b: DescriptorStatus): boolean =>
  a.code === b.code ? a.limitRemaining < b.limitRemaining : a.code === OVER_LIMIT

function headersOf(names: readonly string[], status: DescriptorStatus): Header[] {
  const { currentLimit, limitRemaining, resetMs } = status
  const figures = [currentLimit!.requestsPerUnit, limitRemaining, Math.ceil(resetMs! / 1_000)]
  return names.map((key, i) => ({ key, value: String(figures[i]) }))
}
