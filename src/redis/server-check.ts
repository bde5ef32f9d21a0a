import { MillraceError } from '../core/errors.js'
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
  const nodes = primaries.flatMap(({ node }, i) => (answers[i]!.status === 'fulfilled' ? [node] : []))
  const fields = answers.flatMap((answer) =>
    answer.status === 'fulfilled' ? [fieldsIn(String(answer.value))] : [],
  )
  const [first] = answers
  if (fields.length === 0)
    throw first?.status === 'rejected' ? first.reason : new Error('no primary is known')
  // Of a Cluster, a node that has just become a replica says MOVED.
  const isReplica = !connection.isCluster && fields.some((field) => field('role') === 'slave')
  const evicting = otherKeysExpire ? /^allkeys-/ : /^(allkeys|volatile)-/
  const policy = fields.map((field) => field('maxmemory_policy')).find((name) => name && evicting.test(name))
  return {
    isReplica,
    nodes,
    fault: isReplica ? replicaError() : policy === undefined ? undefined : policyError(policy),
  }
}

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
