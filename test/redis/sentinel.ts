// A primary, its replica, and a sentinel that promotes the replica when the primary is gone.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import { type Server, startServer } from './process.js'
import { answers, startRedis } from './servers.js'
import { sendOnce } from './wire.js'

/** The name by which clients ask the sentinel for the primary. */
export const SENTINEL_NAME = 'millrace'
/**
 * A primary that is silent for so long is down. It must be longer than the second between two PINGs: at 500 ms
 * a sentinel takes a new primary for down before it has asked it once, and promotes the two in turns.
 */
const DOWN_AFTER_MS = 2_000
const FAILOVER_TIMEOUT_MS = 5_000

export interface Sentinel {
  /** The sentinel itself. */
  readonly sentinel: Server
  /** The server that is primary now: after a failover, the former replica. */
  readonly primary: Server
  /** The other one. */
  readonly replica: Server
  /**
   * Kills the primary. Resolves when the replica is primary, and the sentinel says so.
   * @param harm does something else to the primary than to kill it
   */
  failover(harm?: (primary: Server) => Promise<void>): Promise<void>
  /** Starts the killed server again. Resolves when it is a linked replica. */
  rejoin(): Promise<void>
  stop(): Promise<void>
}

/** Starts the three. Resolves when the sentinel knows the replica, which is linked. */
export async function startSentinel(): Promise<Sentinel> {
  const servers: Server[] = []
  const stop = async () => {
    // the sentinel first: it shall not see the others end
    for (const server of servers.toReversed()) await server.stop()
  }
  const started = async (server: Promise<Server>) => {
    servers.push(await server)
    return servers.at(-1)!
  }
  try {
    let primary = await started(startRedis())
    let replica = await started(startRedis({ args: ['--replicaof', `${HOST} ${primary.port}`] }))
    await poll(() => isLinked(replica), 'the link of the replica')
    const sentinel = await started(startWatching(primary))
    await poll(() => isKnown(sentinel, replica), 'the sentinel to know the replica')
    return {
      sentinel,
      get primary() {
        return primary
      },
      get replica() {
        return replica
      },
      async failover(harm = (old) => old.kill()) {
        await harm(primary)
        const promoted = replica
        await poll(() => isPrimary(sentinel, promoted), 'the promotion of the replica')
        replica = primary
        primary = promoted
      },
      async rejoin() {
        await replica.restart()
        await poll(() => isLinked(replica), 'the link of the replica')
        await poll(() => isKnown(sentinel, replica), 'the sentinel to know the replica')
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

async function startWatching(primary: Server): Promise<Server> {
  const sentinel = await startServer({
    program: 'redis-server',
    args: (port, dir) => {
      const file = join(dir, 'sentinel.conf') // the sentinel writes to it
      const lines = [
        `port ${port}`,
        `bind ${HOST}`,
        `dir ${dir}`,
        `sentinel monitor ${SENTINEL_NAME} ${HOST} ${primary.port} 1`,
        `sentinel down-after-milliseconds ${SENTINEL_NAME} ${DOWN_AFTER_MS}`,
        `sentinel failover-timeout ${SENTINEL_NAME} ${FAILOVER_TIMEOUT_MS}`,
      ]
      writeFileSync(file, `${lines.join('\n')}\n`)
      return [file, '--sentinel']
    },
    ready: /\+monitor master/,
  })
  await answers(sentinel.port)
  return sentinel
}

async function isLinked({ port }: Server): Promise<boolean> {
  const [role, , , state] = await roleOf(port)
  return role === 'slave' && state === 'connected'
}

/** The reply to ROLE. Empty if the connection broke: a sentinel that changes a role closes the connections. */
function roleOf(port: number): Promise<string[]> {
  return sendOnce(port, 'ROLE').catch(() => [])
}

/** Whether the sentinel sees a replica that it could promote. */
async function isKnown(sentinel: Server, replica: Server): Promise<boolean> {
  const replicas: string[][] = await sendOnce(sentinel.port, 'SENTINEL', 'REPLICAS', SENTINEL_NAME)
  return replicas.map(fieldsOf).some((fields) => {
    const isLinked = fields.get('master-link-status') === 'ok' && fields.get('flags') === 'slave'
    return fields.get('port') === String(replica.port) && isLinked
  })
}

async function isPrimary(sentinel: Server, server: Server): Promise<boolean> {
  const [role] = await roleOf(server.port)
  const address = await sendOnce(sentinel.port, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', SENTINEL_NAME)
  return role === 'master' && address[1] === String(server.port)
}

/** The fields of a reply that lists names and values in turns. */
function fieldsOf(reply: readonly string[]): Map<string, string> {
  return new Map(reply.flatMap((name, index) => (index % 2 === 0 ? [[name, reply[index + 1]!]] : [])))
}
