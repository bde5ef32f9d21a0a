import { setTimeout } from 'node:timers/promises'

/**
 * Brings what a key has used into the limiter that counts it from now on, because its policy has another window.
 * Each window of a configured limiter has a limiter of its own, a *member*. `algorithms/conversion.ts` does the same
 * for one cell when `update` changes the window: both forget nothing that an old window still counts.
 *
 * **Own units.** A member's *own* units of a key are those that its decisions charged. A member must count its own
 * units and the own units of all others, each once. So a move charges it for the own units of others for which it has
 * not been charged yet. Nothing is taken out of the others: threads that have not learned of the change still decide
 * there.
 *
 * **The ledger.** What a member has been charged for others is counted twice: in the key's cell, and in a second cell
 * of the same table, the key's *ledger*. Both lose it at the same time. So a member's own units are those of the cell
 * without those of the ledger, and what it has been charged is what the ledger says. So a second move charges only
 * what is new, a key may go to and fro, and each thread may move the key for itself. The cell comes first: a thread
 * that reads in between takes some of a charge for own units, and charges them elsewhere. Two threads that move a key
 * at once may charge the same units twice, so processes take turns on a server. Both err to refusal, for at most one window.
 *
 * **Ages.** A charge counts from the move on, so it may leave later than the units that it stands for. Compared as a
 * sum, it could hide newer units, and when it leaves they would be forgotten. So units are compared for each age: of
 * those that are at most so old, no more may be used than have been charged.
 *
 * **Orphans.** A member may have given up units for which another one has been charged, because they have left its own
 * window. A ledger that has more than all others have of their own says so, and these units count, too. So a member
 * counts at least what each other one does. Only what is as young as the ledger's units can be is what it stands for.
 *
 * **A key at rest.** The units of a cell stay in it when they have left its window, until another charge or another
 * key needs the place. So a longer window finds them also if the key rests between the change and its next request.
 */

/** A rule of a member. */
export interface CountedRule {
  readonly windowMs: number
  readonly unit: number | undefined
  /** In its window. 0: it knows how many units count, and not when they were charged. */
  readonly granules: number
}

type Answer<T> = T | Promise<T>

/** What a cell counts: its own units, and those of the ledger. */
export interface OwnUnits {
  readonly own: number
  readonly carried: number
}

/** What a member counts of one key. Rules are named by their index. */
export interface KeyCounts {
  readonly rules: readonly CountedRule[]
  /** The units of the last `lastMs`. If that is longer than the window: what is still there. */
  units(rule: number, lastMs: number): Answer<OwnUnits>
  /** The units of the ledger in the last `lastMs`. */
  charged(rule: number, lastMs: number): Answer<number>
  /** How long ago the units that the ledger stands for were charged, at most. */
  carriedMs(rule: number): number
  /** How long ago the granule began that is so many granules old. */
  sinceMs(rule: number, age: number): number
  /** Charges the cell, then the ledger, by each rule. */
  charge(units: readonly number[]): Answer<unknown>
  /** Milliseconds until the key's block ends, 0 without one. */
  blockLeft(): Answer<number>
  block(ms: number): Answer<unknown>
}

/** What a member on a server counts. Other processes may move the key at the same moment. */
export interface KeyCountsInTurn extends KeyCounts {
  /** Lets only one process at a time charge the key. Undefined: another one does it now. */
  begin(): Promise<(() => Promise<unknown>) | undefined>
}

/** So many ages are compared. If that is not enough, a key that goes to and fro is charged too much. */
const MOST_LOOKS = 64
/** A process waits so often for another one that moves the same key, and so long. */
const MOST_PAUSES = 20
const PAUSE_MS = 10

/** A step is an answer that the rest of the steps needs. */
type Steps<T> = Generator<Answer<unknown>, T, never>

/** Charges `to` for what the key has used in `others`, at once. */
export function carryOver(to: KeyCounts, others: readonly KeyCounts[]): void {
  const steps = comparing(to, others)
  let step = steps.next()
  while (step.done !== true) step = steps.next(step.value as never)
  if (isAny(step.value)) void to.charge(step.value)
}

/** Charges `to`, which may answer by promises, for what the key has used in `others`. */
export async function carryOverLater(
  to: KeyCounts | KeyCountsInTurn,
  others: readonly KeyCounts[],
): Promise<void> {
  const missing = await compare(to, others)
  if (!isAny(missing)) return
  if (!('begin' in to)) {
    await to.charge(missing)
    return
  }
  const end = await to.begin()
  try {
    for (let pauses = 0; ; pauses++) {
      const left = await compare(to, others)
      if (!isAny(left)) return
      // A process that has died in its turn holds up no one.
      if (end === undefined && pauses < MOST_PAUSES) await setTimeout(PAUSE_MS)
      else return void (await to.charge(left))
    }
  } finally {
    await end?.()
  }
}

async function compare(to: KeyCounts, others: readonly KeyCounts[]): Promise<readonly number[]> {
  const steps = comparing(to, others)
  let step = steps.next()
  while (step.done !== true) step = steps.next((await step.value) as never)
  return step.value
}

const isAny = (missing: readonly number[]): boolean => missing.some((units) => units > 0)

/** Carries the block, and returns what is missing by each rule. */
function* comparing(to: KeyCounts, others: readonly KeyCounts[]): Steps<readonly number[]> {
  let left = 0
  for (const other of others) left = Math.max(left, (yield other.blockLeft()) as number)
  if (left > 0 && left > ((yield to.blockLeft()) as number)) yield to.block(left)
  const missing: number[] = []
  for (const index of to.rules.keys()) missing.push(yield* missingIn(to, index, others))
  return missing
}

/** The units of others for which a rule has not been charged. */
function* missingIn(to: KeyCounts, index: number, others: readonly KeyCounts[]): Steps<number> {
  const rule = to.rules[index]!
  const { windowMs, granules } = rule
  const sources = others
    .map((counts) => ({ counts, source: sourceFor(rule, counts.rules) }))
    .filter(({ source }) => source >= 0)
  const found: OwnUnits[] = []
  for (const { counts, source } of sources) found.push((yield counts.units(source, windowMs)) as OwnUnits)
  const all = found.reduce((sum, { own }) => sum + own, 0)
  // Also if nothing is missing: a ledger that changes its window later than its cell may keep what that has lost.
  const allCharged = (yield to.charged(index, windowMs)) as number
  if (all === 0 && found.every(({ carried }) => carried === 0)) return 0
  let orphans = 0
  for (const [i, { carried }] of found.entries()) {
    if (carried === 0) continue
    const { counts, source } = sources[i]!
    const ms = Math.min(windowMs, counts.carriedMs(source))
    let known = ((yield to.units(index, ms)) as OwnUnits).own
    for (const [j, other] of sources.entries()) {
      if (j === i) continue
      const own = ms === windowMs ? found[j]! : ((yield other.counts.units(other.source, ms)) as OwnUnits)
      known += own.own
    }
    orphans = Math.max(orphans, carried - known)
  }
  const oldest = { age: granules, used: all + orphans, charged: allCharged }
  let missing = Math.max(0, oldest.used - oldest.charged)
  if (granules === 0) return missing
  const look = function* (age: number): Steps<Look> {
    const ms = to.sinceMs(index, age)
    let used = orphans
    for (const { counts, source } of sources) used += ((yield counts.units(source, ms)) as OwnUnits).own
    const charged = (yield to.charged(index, ms)) as number
    missing = Math.max(missing, used - charged)
    return { age, used, charged }
  }
  // Between two ages at most as much is missing as was used up to the greater one and not charged up to the other.
  const intervals: [Look, Look][] = [[yield* look(0), oldest]]
  for (let looks = 0; intervals.length > 0; looks++) {
    const [newer, older] = intervals.pop()!
    const bound = older.used - newer.charged
    if (bound <= missing || older.age - newer.age <= 1) continue
    if (looks >= MOST_LOOKS) missing = bound
    else {
      const middle = yield* look((newer.age + older.age) >>> 1)
      intervals.push([newer, middle], [middle, older])
    }
  }
  return missing
}

/** What others used, and what was charged for it, in the last granules. */
interface Look {
  readonly age: number
  readonly used: number
  readonly charged: number
}

/** The rule that knows most exactly what was used in a window of this length: the shortest one that covers it; or -1. */
function sourceFor({ windowMs, unit }: CountedRule, rules: readonly CountedRule[]): number {
  let best = -1
  for (const [i, rule] of rules.entries()) {
    if (rule.unit !== unit) continue // bytes are no requests
    const [ms, bestMs] = [rule.windowMs, best < 0 ? 0 : rules[best]!.windowMs]
    if (ms >= windowMs ? bestMs < windowMs || ms < bestMs : bestMs < windowMs && ms > bestMs) best = i
  }
  return best
}
