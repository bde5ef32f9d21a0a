import { once } from 'node:events'
import type { ServerHttp2Session } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'

/** Servers accept headers of this many bytes: a limiter must stand them. */
const MOST_HEADER_BYTES = 1 << 20
export const SERVER_OPTIONS = { maxHeaderSize: MOST_HEADER_BYTES }
export const HTTP2_OPTIONS = {
  maxSendHeaderBlockLength: MOST_HEADER_BYTES,
  settings: { maxHeaderListSize: MOST_HEADER_BYTES },
}

/** The open sessions of servers of HTTP/2, which have no method to close them. */
const sessionsOf = new WeakMap<Server, Set<ServerHttp2Session>>()

/** Listens on a free port of this machine. Resolves with the URL. */
export async function listen(server: Server): Promise<string> {
  const sessions = new Set<ServerHttp2Session>()
  sessionsOf.set(server, sessions)
  server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Closes a server with all of its connections. */
export async function shut(server: Server & { closeAllConnections?(): void }): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections?.()
  for (const session of sessionsOf.get(server) ?? []) session.destroy()
  await closed
}
