import { checkRule } from '#millrace/core/rule.js'
import { LeaseStatus, leaseArguments, MOST_AGES } from '#millrace/redis/leases/lease-message.js'
import { leaseScript } from '#millrace/redis/leases/lease-script.js'
import { KeyNames } from '#millrace/remote/key-names.js'
import { checkRemoteRule } from '#millrace/remote/remote-rule.js'
import { type Benchmark, type Contender, ratioOf } from '../benchmark.js'
import { KEYS, LOAD, type Sent, serverTime } from './paced.js'
import { MillraceCommands, shaOf } from './scripts.js'
import { redisMissing } from './server.js'
import { encoded, type Reply } from './wire.js'

const STRICT = 'a check of a strict limiter'
const NODES = 8
/** Granules that a chunk lasts: a fifth of a window while much is free, later a twentieth. */
const LASTS = [LOAD.granules / 20, LOAD.granules / 5]
const UNITS_A_GRANULE = 5
/** So much that no node is refused. */
const LIMIT = 1_000_000

const nameOf = (granules: number) => `a message that leases for ${granules} granules`

interface NodeOfKey {
  seq: number
  spent: number
}

/** Messages of a fleet: each node has spent a chunk since its last one, and wants another. */
function messages(granules: number): Sent {
  const { windowMs } = LOAD
  const granularity = windowMs / LOAD.granules
  const rule = checkRemoteRule(checkRule({ limit: LIMIT, window: windowMs, granularity }))
  const source = leaseScript([rule], false)
  const sha = shaOf(source)
  const names = new KeyNames('bench', [rule.rule.name])
  const chunk = UNITS_A_GRANULE * granules
  const groups = Math.min(granules, MOST_AGES)
  const ages = Array.from({ length: groups }, (_, i) => ({
    units: chunk / groups,
    ageMs: Math.round(((groups - 1 - i) * granules * granularity) / groups),
  }))
  const fleets = new Map<string, NodeOfKey[]>()
  let turn = 0

  const commandOf = (key: string) => {
    let fleet = fleets.get(key)
    if (fleet === undefined) {
      fleet = Array.from({ length: NODES }, () => ({ seq: 0, spent: 0 }))
      fleets.set(key, fleet)
    }
    const index = turn++ % NODES
    const node = fleet[index]!
    const acked = node.spent
    node.seq++
    node.spent += chunk
    const message = {
      ...{
        id: Buffer.from(`node ${index}  `),
        seq: node.seq,
        leaseMs: 0.4 * windowMs,
        wants: chunk,
        direct: [],
      },
      rules: [{ limit: LIMIT, held: 0, spent: node.spent, acked, least: chunk, ages }],
    }
    return encoded(['EVALSHA', sha, '1', ...names.of(key), ...leaseArguments(message)])
  }
  return {
    source,
    commandsOf: (keys) => keys.map(commandOf),
    admittedIn: (reply: Reply) => Number((reply as number[])[0] === LeaseStatus.LEASED),
  }
}

function leasing(granules: number): Contender {
  return {
    name: nameOf(granules),
    measure: async (effort) => ({ us: await serverTime(effort, messages(granules)) }),
  }
}

const strict: Contender = {
  name: STRICT,
  async measure(effort) {
    const millrace = new MillraceCommands(LOAD)
    const commandsOf = (keys: readonly string[]) => keys.map((key) => millrace.commandOf(key))
    const admittedIn = (reply: Reply) => Number(millrace.isAllowed(reply))
    return { us: await serverTime(effort, { source: millrace.source, commandsOf, admittedIn }) }
  },
}

const goalOf = (granules: number) => ({
  label: `server time: ${nameOf(granules)} / ${STRICT}`,
  unit: 'x' as const,
  value: ratioOf(nameOf(granules), STRICT, 'us'),
})

export const redisLeases: Benchmark = {
  title: `the server's time for a message of one of ${NODES} nodes: ${KEYS.toLocaleString('en')} keys, 60 granules, one message in each`,
  units: { us: "microseconds of the server's processor time per call" },
  contenders: [strict, ...LASTS.map(leasing)],
  goals: [{ ...goalOf(LASTS[0]!), atMost: 2.2 }, goalOf(LASTS[1]!)],
  unavailable: redisMissing,
}
