import { MillraceError } from '../../core/errors.js'
import { messageOf } from '../../remote/last-error.js'
import type { RedisConnection } from './connection.js'

/** What `INFO` says of a server, or of the primaries of a Cluster. */
export interface ServerState {
  readonly isReplica: boolean
  /** Why the limiter can't use this server. */
  readonly fault: MillraceError | undefined
  /** The names of those that have answered. */
  readonly nodes: readonly string[]
}

/** What a limiter takes of a server. */
export interface ServerDemands {
  /** Whether a server may evict keys that expire: it has such keys of others. */
  readonly otherKeysExpire: boolean
}

/**
 * Asks each primary whether counts are safe with it. In a Cluster, those that answer are enough.
 * @param within the same promise, but it rejects when it takes too long
 * @throws (rejects) the reason of the first one, if none has answered
 */
export async function serverState(
  connection: RedisConnection,
  within: (answer: Promise<unknown>) => Promise<unknown>,
  { otherKeysExpire }: ServerDemands,
): Promise<ServerState> {
  const primaries = connection.primaries()
  const answers = await Promise.allSettled(primaries.map(({ send }) => within(send(['INFO']))))
  const isHeard = answers.map((answer) => answer.status === 'fulfilled' || isNotAllowed(answer.reason))
  const nodes = primaries.flatMap(({ node }, i) => (isHeard[i] ? [node] : []))
  const fields = answers.flatMap((answer) =>
    answer.status === 'fulfilled' ? [fieldsIn(String(answer.value))] : [],
  )
  const [first] = answers
  if (nodes.length === 0) throw first?.status === 'rejected' ? first.reason : new Error('no primary is known')
  // Of a Cluster, a node that has just become a replica says MOVED.
  const isReplica = !connection.isCluster && fields.some((field) => field('role') === 'slave')
  const evicting = otherKeysExpire ? /^allkeys-/ : /^(allkeys|volatile)-/
  const policy = fields.map((field) => field('maxmemory_policy')).find((name) => name && evicting.test(name))
  return {
    isReplica,
    nodes,
    fault: isReplica
      ? replicaError()
      : policy !== undefined
        ? policyError(policy)
        : fields.some((field) => field('cluster_enabled') === '1') && !connection.isCluster
          ? await partError(connection, within)
          : undefined,
  }
}

/** Undefined for a Cluster of one primary, which has all keys, and while the node knows of no slot yet. */
async function partError(
  connection: RedisConnection,
  within: (answer: Promise<unknown>) => Promise<unknown>,
): Promise<MillraceError | undefined> {
  const [primary] = connection.primaries()
  const info = String(await within(primary!.send(['CLUSTER', 'INFO'])).catch(() => ''))
  if (['0', '1'].includes(fieldsIn(info)('cluster_size') ?? '')) return undefined
  return new MillraceError(
    'ERR_MILLRACE_INVALID_OPTION',
    'client',
    'a client of one node of a Cluster',
    'a client of the Cluster: new Cluster(...) of ioredis, or createCluster(...) of node-redis',
  )
}

/** Whether a server has answered that it does not allow a command. */
const isNotAllowed = (error: unknown): boolean => /^(NOPERM|ERR unknown command)/.test(messageOf(error))

function fieldsIn(info: string): (name: string) => string | undefined {
  return (name) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1]
}

function replicaError(): MillraceError {
  return new MillraceError(
    'ERR_MILLRACE_INVALID_OPTION',
    'client',
    'a client of a replica',
    'a client of the primary',
  )
}

function policyError(policy: string): MillraceError {
  const expected = policy.startsWith('volatile-')
    ? 'noeviction: with volatile-* Redis may forget counts, for they expire. If the server holds other keys that ' +
      'expire, and memory enough, otherKeysExpire: true'
    : 'noeviction: with allkeys-* Redis may forget any key at any time'
  return new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'maxmemory-policy', policy, expected)
}
