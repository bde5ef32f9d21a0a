import { type Duration, parseDuration } from '../core/duration.js'
import { invalid } from '../core/errors.js'
import type { RemoteRule } from './remote-rule.js'

/** What a limiter does while its server does not answer. */
export type OnOutage = 'closed' | 'open' | 'local'

/** The options of a limiter on a server that are the same for all kinds of servers. */
interface OutageOptions {
  deadline?: Duration
  onOutage?: OnOutage
  nodes?: number
  maxKeys?: number
  rememberRefusals?: boolean
}

/** The same, checked. */
export interface OutagePlan {
  readonly deadlineMs: number
  readonly onOutage: OnOutage
  readonly nodes: number
  readonly maxKeys: number
  readonly rememberRefusals: boolean
}

const OUTAGES: readonly unknown[] = ['closed', 'open', 'local'] satisfies OnOutage[]
const LONGEST_DEADLINE_MS = 60_000

/** @throws MillraceError naming the option, the value and what would be right */
export function checkOutageOptions(options: OutageOptions, rules: readonly RemoteRule[]): OutagePlan {
  const { deadline = 50, onOutage = 'closed', nodes, maxKeys = 100_000, rememberRefusals = false } = options
  const deadlineMs = parseDuration(deadline, 'deadline')
  if (deadlineMs < 1 || deadlineMs > LONGEST_DEADLINE_MS)
    throw invalid('deadline', deadline, 'a duration of 1 ms to a minute')
  if (!OUTAGES.includes(onOutage)) throw invalid('onOutage', onOutage, "'closed', 'open' or 'local'")
  if (nodes !== undefined && !(Number.isInteger(nodes) && nodes >= 1))
    throw invalid('nodes', nodes, 'an integer of 1 or more')
  if (!(Number.isInteger(maxKeys) && maxKeys >= 1))
    throw invalid('maxKeys', maxKeys, 'an integer of 1 or more')
  if (onOutage === 'local') checkShares(rules, nodes)
  if (typeof rememberRefusals !== 'boolean')
    throw invalid('rememberRefusals', rememberRefusals, 'true or false')
  return { deadlineMs, onOutage, nodes: nodes ?? 1, maxKeys, rememberRefusals }
}

/** Every process needs at least one unit of each limit. */
function checkShares(rules: readonly RemoteRule[], nodes: number | undefined): void {
  if (nodes === undefined) throw invalid('nodes', nodes, "the number of processes, for onOutage: 'local'")
  const small = rules.find(({ rule }) => rule.limit < nodes)
  if (small === undefined) return
  const expected = `at most ${small.rule.limit}, the limit of '${small.rule.name}': each process needs a share of it`
  throw invalid('nodes', nodes, expected)
}
