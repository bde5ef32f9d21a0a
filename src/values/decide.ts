import { countsRefusals, isEnforced } from '../core/verdict.js'
import type { CountingCall } from '../remote/counting-call.js'
import { NO_MARK, Verdict } from '../remote/reply-codes.js'
import { type Count, FOREVER_MS, NOTHING } from './count.js'

/** What a rule says of a cost, before anything is charged. */
interface Opinion {
  readonly verdict: number
  /** -1: for ever. */
  readonly waitMs: number
}

/** Decides a call of one key, request by request, and changes its counts. The reply is that of a script on Redis. */
export function decide(call: CountingCall, counts: readonly Count[]): number[] {
  const { op, costs, more } = call
  if (op === 'usage') return [counts[Number(more[0]) - 1]!.usedInLast(costs[0]!)]
  const isAsking = op === 'check' || op === 'try' || op === 'peek'
  const reply: number[] = []
  for (let at = 0; at < costs.length; at += counts.length) {
    const own = costs.slice(at, at + counts.length)
    if (isAsking) reply.push(...asked(op, own, counts))
    else reply.push(...counts.flatMap((count, i) => changed(call, count, i, own[i]!, at / counts.length)))
  }
  return reply
}

/** The reply to requests that could not be decided, because others changed the key again and again. Nothing is charged. */
export function contended({ costs }: CountingCall, counts: readonly Count[], waitMs: number): number[] {
  const one = counts.flatMap((count) => {
    const { remaining, resetMs } = figuresOf(count)
    return [refusalOf(count), remaining, waitMs, resetMs, unmarked(count), count.born]
  })
  return Array.from({ length: costs.length / counts.length }, () => one).flat()
}

function asked(op: CountingCall['op'], costs: readonly number[], counts: readonly Count[]): number[] {
  const opinions = counts.map((count, i) => opinionOf(count, costs[i]!))
  const isRefused = opinions.some(({ verdict }) => verdict === Verdict.REFUSED)
  return counts.flatMap((count, i) => {
    const cost = costs[i]!
    const { verdict, waitMs } = opinions[i]!
    const isOver = verdict !== Verdict.ADMITTED
    const isCounted = op === 'check' && isOver && countsRefusals(count.remote.rule)
    let wait = waitMs
    let mark = NOTHING
    if (isOver ? isCounted && cost > 0 && cost <= count.limit : op !== 'peek' && !isRefused && cost > 0) {
      mark = count.charge(cost)
      // A refusal that counts must wait for its own charge, too.
      if (isOver && wait >= 0) wait = Math.max(wait, count.untilFitsMs(cost))
    }
    const { remaining, resetMs } = figuresOf(count)
    return [verdict, remaining, wait, resetMs, isOver ? unmarked(count) : mark, count.born]
  })
}

const unmarked = ({ isBlocked }: Count): number => (isBlocked ? NO_MARK.BLOCKED : NO_MARK.NOTHING)

const refusalOf = ({ remote }: Count): number =>
  isEnforced(remote.rule) ? Verdict.REFUSED : Verdict.SHADOWED

function opinionOf(count: Count, cost: number): Opinion {
  const { limit, untilMs, nowMs, isBlocked } = count
  const isOver = !count.fits(cost)
  if (!isOver && !isBlocked) return { verdict: Verdict.ADMITTED, waitMs: 0 }
  const verdict = refusalOf(count)
  if (cost > limit || untilMs === FOREVER_MS) return { verdict, waitMs: -1 }
  return { verdict, waitMs: Math.max(isOver ? count.untilFitsMs(cost) : 0, untilMs - nowMs) }
}

function figuresOf(count: Count): { remaining: number; resetMs: number } {
  const { remaining, emptyMs, untilMs, nowMs } = count
  if (!count.isBlocked) return { remaining, resetMs: emptyMs }
  return { remaining: 0, resetMs: untilMs === FOREVER_MS ? -1 : Math.max(emptyMs, untilMs - nowMs) }
}

/**
 * The reply to a change: see `ChangedPart`.
 * @param index of the rule
 * @param at the index of the change in the call
 */
function changed(
  { op, more }: CountingCall,
  count: Count,
  index: number,
  cost: number,
  at: number,
): number[] {
  const done = (result: number, newest: number = NOTHING, ms = 0): number[] => {
    return [result, newest, count.born, ms, count.used]
  }
  const charged = (ageMs: number): number[] => {
    const mark = cost === 0 ? NOTHING : count.charge(cost, ageMs)
    return done(0, mark, mark === NOTHING ? 0 : count.endMs - count.nowMs)
  }
  switch (op) {
    case 'penalize':
      return charged(0)
    case 'penalizeAgo':
      return charged(Number(more[at]))
    case 'refund': {
      const { given, newest, ageMs } = count.refund(cost)
      return done(given, newest, ageMs)
    }
    case 'giveBack': {
      const [mark, birth] = [more[2 * index], more[2 * index + 1]]
      const isOwn = count.exists && mark !== '' && Number(birth) === count.born
      return done(isOwn ? count.giveBack(Number(mark), cost) : 0)
    }
    case 'block':
      count.block(cost)
      return done(0)
    case 'unblock':
      return done(count.unblock() ? 1 : 0)
    default:
      count.clear()
      return done(0)
  }
}
