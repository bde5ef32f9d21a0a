import { countsRefusals, isEnforced } from '../../core/verdict.js'
import { Verdict } from '../script-codes.js'
import type { CountingCall } from './counting-call.js'
import { FOREVER_MS, type LogValue } from './log-value.js'

/** The receipt's mark where nothing was charged. */
const NOTHING = -1

/** What a rule says of a cost, before anything is charged. */
interface Opinion {
  readonly verdict: number
  /** -1: for ever. */
  readonly waitMs: number
}

/**
 * Decides a call of one key, and changes its values, one for each rule. The reply is that of the script: this is
 * the same decision for `optimistic: true`.
 */
export function decideLog(call: CountingCall, values: readonly LogValue[]): number[] {
  const { op, costs, more } = call
  switch (op) {
    case 'check':
    case 'try':
    case 'peek':
      return decided(call, values)
    case 'usage':
      return [values[Number(more[0]) - 1]!.usedInLast(costs[0]!)]
    default:
      return values.flatMap((value, i) => changed(call, value, i))
  }
}

function decided({ op, costs }: CountingCall, values: readonly LogValue[]): number[] {
  const opinions = values.map((value, i) => opinionOf(value, costs[i]!))
  const isRefused = opinions.some(({ verdict }) => verdict === Verdict.REFUSED)
  return values.flatMap((value, i) => {
    const cost = costs[i]!
    const { verdict, waitMs } = opinions[i]!
    const isOver = verdict !== Verdict.ADMITTED
    const isCounted = op === 'check' && isOver && countsRefusals(value.rule)
    let wait = waitMs
    let mark = -1
    if (isOver ? isCounted && cost > 0 && cost <= value.limit : op !== 'peek' && !isRefused && cost > 0) {
      mark = value.charge(cost)
      // A refusal that counts must wait for its own charge, too.
      if (isOver && wait >= 0) wait = Math.max(wait, value.leavesMs(value.sum + cost - value.limit))
    }
    const { remaining, resetMs } = figuresOf(value)
    return [verdict, remaining, wait, resetMs, isOver ? -1 : mark, value.born]
  })
}

function opinionOf(value: LogValue, cost: number): Opinion {
  const { limit, sum, untilMs, nowMs, isBlocked } = value
  const isOver = cost > 0 && sum + cost > limit
  if (!isOver && !isBlocked) return { verdict: Verdict.ADMITTED, waitMs: 0 }
  const verdict = isEnforced(value.rule) ? Verdict.REFUSED : Verdict.SHADOWED
  if (cost > limit || untilMs === FOREVER_MS) return { verdict, waitMs: -1 }
  const fitsMs = isOver ? value.leavesMs(sum + cost - limit) : 0
  return { verdict, waitMs: Math.max(fitsMs, untilMs - nowMs) }
}

function figuresOf(value: LogValue): { remaining: number; resetMs: number } {
  const { limit, sum, emptyMs, untilMs, nowMs } = value
  if (!value.isBlocked) return { remaining: Math.max(0, limit - sum), resetMs: emptyMs }
  return { remaining: 0, resetMs: untilMs === FOREVER_MS ? -1 : Math.max(emptyMs, untilMs - nowMs) }
}

/** The reply to a change: see `ChangedPart`. */
function changed({ op, costs, more }: CountingCall, value: LogValue, index: number): number[] {
  const cost = costs[index]!
  const [mark, birth] = [more[2 * index], more[2 * index + 1]]
  const charged = (receipt: number): number[] => [0, receipt, value.born, value.lastsMs, value.sum]
  const done = (result: number, newest: number = NOTHING, ms = 0): number[] => [
    result,
    newest,
    value.born,
    ms,
    value.sum,
  ]
  switch (op) {
    case 'penalize':
      return charged(value.charge(cost))
    case 'penalizeAgo':
      return charged(cost === 0 ? NOTHING : value.charge(cost, Number(more[0])))
    case 'refund': {
      const { given, newest, ageMs } = value.refund(cost)
      return done(given, newest, ageMs)
    }
    case 'giveBack':
      return done(mark === '' ? 0 : value.giveBack(Number(mark), Number(birth), cost))
    case 'block':
      value.block(cost)
      return done(0)
    case 'unblock':
      return done(value.unblock() ? 1 : 0)
    default:
      value.clear()
      return done(0)
  }
}
