import { MillraceError } from '../../core/errors.js'
import { CONNECT_TIMEOUT_MS, DISCONNECT_TIMEOUT_MS, reconnectMs } from '../../remote/reconnect.js'
import type { RedisConnection } from './connection.js'
import type { ClusterClient, IoredisClient, SingleClient } from './ioredis-client.js'
import { ClusterConnection } from './ioredis-cluster.js'
import { SingleConnection } from './ioredis-connection.js'

interface Options {
  readonly enableOfflineQueue?: boolean
  readonly autoResendUnfulfilledCommands?: boolean
  readonly retryDelayOnFailover?: number
  readonly redisOptions?: Options
  readonly scaleReads?: unknown
  readonly keyPrefix?: string
  readonly stringNumbers?: boolean
}

/** The options of a connection that sends no command twice. */
const SINGLE = {
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  enableAutoPipelining: false,
  lazyConnect: false,
  readOnly: false,
  keyPrefix: '',
  stringNumbers: false,
  connectTimeout: CONNECT_TIMEOUT_MS,
  maxRetriesPerRequest: 0, // a command of a lost connection fails at the next attempt to connect
  retryStrategy: reconnectMs,
  failoverDetector: true, // of a Sentinel: the connection to a primary that stands still would stay open for ever
  sentinelCommandTimeout: CONNECT_TIMEOUT_MS, // one that stands still is passed over for the next one
  disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  reconnectOnError: null, // the channel does it, for all clients
} as const

export function isIoredis(client: unknown): client is IoredisClient {
  if (typeof client !== 'object' || client === null) return false
  const { status, call, duplicate, disconnect } = client as Partial<IoredisClient>
  return (
    typeof status === 'string' &&
    [call, duplicate, disconnect].every((method) => typeof method === 'function')
  )
}

export function fromIoredis(client: IoredisClient, own: boolean): RedisConnection {
  if (client.isCluster) {
    const cluster = client as ClusterClient
    return new ClusterConnection(own ? ownCluster(cluster) : checked(cluster, true), own)
  }
  const single = client as SingleClient
  return new SingleConnection(own ? single.duplicate(SINGLE) : checked(single, false), own)
}

function ownCluster(client: ClusterClient): ClusterClient {
  const { redisOptions = {} } = client.options as Options
  return client.duplicate([], {
    enableOfflineQueue: false,
    enableAutoPipelining: false,
    lazyConnect: false,
    scaleReads: 'master',
    keyPrefix: '',
    clusterRetryStrategy: clusterReconnectMs,
    retryDelayOnFailover: 0, // it would send a command of a lost connection again
    retryDelayOnClusterDown: 0,
    retryDelayOnMoved: 0,
    retryDelayOnTryAgain: 20,
    maxRedirections: 3, // each follows a refusal to run the command
    slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
    enableReadyCheck: false, // it asks one node, and waits for ever if that stands still; the limiter asks all
    redisOptions: { ...redisOptions, ...SINGLE, retryStrategy: null, lazyConnect: true },
  })
}

/** ioredis tells nobody else that the name of a node is unknown. */
function clusterReconnectMs(this: ClusterClient, attempts: number, reason?: unknown): number {
  if (reason !== undefined) this.emit('node error', reason, '')
  return reconnectMs(attempts)
}

/** @throws MillraceError for options by which a command may be sent twice, or be sent later */
function checked<C extends IoredisClient>(client: C, isCluster: boolean): C {
  const options = client.options as Options
  const at = isCluster ? (options.redisOptions ?? {}) : options
  if (options.enableOfflineQueue !== false) refuse('enableOfflineQueue', options.enableOfflineQueue, 'false')
  if (at.autoResendUnfulfilledCommands !== false)
    refuse('autoResendUnfulfilledCommands', at.autoResendUnfulfilledCommands, 'false')
  if (isCluster && options.retryDelayOnFailover !== 0)
    refuse('retryDelayOnFailover', options.retryDelayOnFailover, '0')
  if (at.stringNumbers) refuse('stringNumbers', at.stringNumbers, 'false')
  if (options.keyPrefix) refuse('keyPrefix', options.keyPrefix, 'none: the option prefix of the limiter')
  return client
}

function refuse(option: string, value: unknown, expected: string): never {
  throw new MillraceError(
    'ERR_MILLRACE_INVALID_OPTION',
    `client.options.${option}`,
    value,
    `${expected}, with ownConnection: false`,
  )
}
