import { MillraceError } from '../core/errors.js'
import type { RedisConnection } from './connection.js'

/** What `INFO` says of a server. */
export interface ServerState {
  readonly isReplica: boolean
  /** Why the limiter can't use this server. */
  readonly fault: MillraceError | undefined
}

/** Asks each primary whether counts are safe with it. */
export async function serverState(connection: RedisConnection): Promise<ServerState> {
  const answers = await Promise.all(connection.primaries().map((send) => send(['INFO'])))
  const fields = answers.map((answer) => fieldsIn(String(answer)))
  const isReplica = fields.some((field) => field('role') === 'slave')
  const policy = fields.map((field) => field('maxmemory_policy')).find((name) => name?.startsWith('allkeys-'))
  return {
    isReplica,
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
  const expected = 'noeviction, or a policy volatile-*: with allkeys-* Redis may forget any key at any time'
  return new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'maxmemory-policy', policy, expected)
}
