import { unitsOf } from '../../core/units.js'
import { countsRefusals } from '../../core/verdict.js'
import type { CallLimit } from '../../engines/engine.js'
import type { Pending } from '../../remote/deadlines.js'
import { hasCounted, type RemoteDecision } from '../../remote/remote-decision.js'
import type { RemoteRule } from '../../remote/remote-rule.js'
import type { Asked, Asking } from '../../remote/remote-store.js'
import type { PlacedDecision } from './merged-decision.js'
import { NO_RECEIPT } from './receipts.js'
import { isExpected, type Shard, storeOf } from './shard.js'

/** Requests about keys that all have the same shards. */
export interface Requests {
  readonly op: Asking
  readonly asked: readonly Asked[]
  readonly limit: CallLimit | undefined
  readonly rules: readonly RemoteRule[]
}

/**
 * Asks one shard after the other, and charges at all or at none. A shard is asked about the requests that all shards
 * before it have admitted. A request that a later one refuses is given back at the earlier ones: until then it counts
 * there, so another request may be refused without need. None is admitted without need.
 *
 * @param call once it is settled, what has been charged is given back
 * @returns of each request, what the shards have said
 * @throws Outage (rejects) if one does not answer. What has been charged is given back, then, as far as possible
 */
export async function chargeInTurn(
  shards: readonly Shard[],
  requests: Requests,
  call: Pick<Pending, 'isSettled'>,
): Promise<PlacedDecision[][]> {
  const said: PlacedDecision[][] = requests.asked.map(() => [])
  for (const round of roundsOf(requests)) {
    await chargeRound(shards, requests, round, said)
    if (!call.isSettled) continue
    const admitted = said.filter((each) => each.at(-1)?.decision.allowed)
    await Promise.all(admitted.map((each) => giveBack(shards, requests.rules, each)))
    break
  }
  return said
}

/**
 * The indices of requests that are asked together. If refusals count, a shard must know of the refusal of one request
 * before it decides the next one of the same key.
 */
function roundsOf({ asked, rules }: Requests): number[][] {
  if (!rules.some(({ rule }) => countsRefusals(rule))) return [[...asked.keys()]]
  const rounds: number[][] = []
  const seen = new Map<string, number>()
  for (const [i, { key }] of asked.entries()) {
    const round = seen.get(key) ?? 0
    seen.set(key, round + 1)
    rounds[round] ??= []
    rounds[round].push(i)
  }
  return rounds
}

/** Adds what the shards say of some of the requests. */
async function chargeRound(
  shards: readonly Shard[],
  requests: Requests,
  round: readonly number[],
  said: readonly PlacedDecision[][],
): Promise<void> {
  const { op, asked, limit, rules } = requests
  let open = round
  for (const [at, shard] of shards.entries()) {
    try {
      const about = open.map((i) => asked[i]!)
      const decisions = await storeOf(shard).ask(op, about, limit)
      for (const [j, i] of open.entries()) said[i]!.push({ place: shard.id, decision: decisions[j]! })
    } catch (error) {
      const admitted = said.filter((each) => each.at(-1)?.decision.allowed)
      void Promise.all(admitted.map((each) => giveBack(shards, rules, each)))
      throw error
    }
    const refused = open.filter((i) => !said[i]!.at(-1)!.decision.allowed)
    open = open.filter((i) => said[i]!.at(-1)!.decision.allowed)
    const later = shards.slice(at + 1)
    await Promise.all(refused.map((i) => refuse(shards, later, requests, asked[i]!, said[i]!)))
    if (open.length === 0) break
  }
}

/** Asks all shards at the same time: several are only peeked at. */
export async function askAtOnce(
  shards: readonly Shard[],
  { op, asked, limit }: Requests,
): Promise<PlacedDecision[][]> {
  const all = await Promise.all(shards.map((shard) => storeOf(shard).ask(op, asked, limit)))
  return asked.map((_, i) => shards.map(({ id }, s) => ({ place: id, decision: all[s]![i]! })))
}

/**
 * Gives back what the earlier shards have charged for a request that the last one has refused. A rule with
 * `countRefused` that refuses has counted it, so it keeps the charges, and the later shards count it, too.
 */
async function refuse(
  shards: readonly Shard[],
  later: readonly Shard[],
  { op, rules }: Requests,
  { free }: Asked,
  said: readonly PlacedDecision[],
): Promise<void> {
  const { decision } = said.at(-1)!
  const { cost, limits: own } = decision.requested
  const counts = rules.map(
    ({ rule }, i) =>
      op === 'check' && !free?.[i] && hasCounted(rule, decision.parts[i]!, cost, own?.[i] ?? rule.limit),
  )
  const work: Promise<unknown>[] = [giveBack(shards, rules, said.slice(0, -1), counts)]
  if (counts.includes(true)) {
    const { key, limits } = decision.requested
    const units = unitsIn(rules, decision).map((own, i) => (counts[i] ? own : 0))
    work.push(
      ...later.map((shard) => storeOf(shard).change('penalize', key, units, [], limits).catch(ignore)),
    )
  }
  await Promise.all(work)
}

/** @param keeps rules whose charges stay */
async function giveBack(
  shards: readonly Shard[],
  rules: readonly RemoteRule[],
  said: readonly PlacedDecision[],
  keeps: readonly boolean[] = [],
): Promise<void> {
  await Promise.all(
    said.map(async ({ place, decision }) => {
      const { key, limits } = decision.requested
      const receipts = decision.parts.map(({ receipt }, i) => (keeps[i] ? undefined : receipt))
      const shard = shards.find(({ id }) => id === place)!
      if (receipts.every((receipt) => receipt === undefined)) return
      const more = receipts.flatMap((receipt) => receipt?.map(String) ?? NO_RECEIPT)
      await storeOf(shard).change('giveBack', key, unitsIn(rules, decision), more, limits).catch(ignore)
    }),
  )
}

const unitsIn = (rules: readonly RemoteRule[], { requested }: RemoteDecision): number[] =>
  rules.map(({ rule }) => unitsOf(requested.cost, rule.unit ?? 1))

/** What is not given back counts until it leaves: less is admitted. */
function ignore(error: unknown): void {
  if (!isExpected(error)) throw error
}
