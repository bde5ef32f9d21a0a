// Ways in which a server may be out of reach, each with its beginning and its end.
import type { Server } from './process.js'
import { startProxy, type TcpProxy } from './proxy.js'
import { addName, removeName } from './resolver.js'
import { startRedis } from './servers.js'
import { sendOnce } from './wire.js'

/** A server behind a proxy, which has a name of its own. */
export interface Place {
  readonly name: string
  readonly server: Server
  readonly proxy: TcpProxy
}

export interface Fault {
  readonly name: string
  /** Whether commands that only read have replies. */
  readonly answersReads?: boolean
  begin(place: Place): unknown
  /** Resolves when the server could answer. */
  end(place: Place): unknown
}

/** Far longer than a deadline, and shorter than the silence after which a connection is replaced. */
const SLOW_MS = 900
/** Longer than any test: it is ended before. */
const PAUSE_MS = 600_000

export const FAULTS: readonly Fault[] = [
  { name: 'stopped', begin: ({ server }) => server.pause(), end: ({ server }) => server.resume() },
  { name: 'killed', begin: ({ server }) => server.kill(), end: ({ server }) => server.restart() },
  { name: 'slow', begin: ({ proxy }) => proxy.delayReplies(SLOW_MS), end: ({ proxy }) => proxy.restore() },
  {
    name: 'paused',
    // Scripts wait. Without WRITE the command that ends the pause would wait, too.
    begin: ({ server }) => sendOnce(server.port, 'CLIENT', 'PAUSE', PAUSE_MS, 'WRITE'),
    answersReads: true,
    end: ({ server }) => sendOnce(server.port, 'CLIENT', 'UNPAUSE'),
  },
  {
    name: 'refusing',
    begin({ proxy }) {
      proxy.refuse()
      proxy.cutAll()
    },
    end: ({ proxy }) => proxy.accept(),
  },
  { name: 'silent', begin: ({ proxy }) => proxy.dropAll(), end: ({ proxy }) => proxy.restore() },
  {
    name: 'nameless',
    begin({ name, proxy }) {
      removeName(name)
      proxy.cutAll()
    },
    end: ({ name }) => addName(name),
  },
]

let places = 0

/** Starts a server and a proxy, and stops them when `act` has ended. */
export async function withPlace(act: (place: Place) => Promise<void>): Promise<void> {
  const server = await startRedis()
  const name = `redis-${++places}.test`
  addName(name)
  try {
    const proxy = await startProxy(server.port)
    await act({ name, server, proxy })
    proxy.close()
  } finally {
    removeName(name)
    await server.stop()
  }
}
