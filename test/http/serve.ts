import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createHttp2Server, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import type { RateLimitStats } from 'millrace/http'
import type { Served } from './driver.js'

/** Servers accept headers of this many bytes: a limiter must stand them. */
const MOST_HEADER_BYTES = 1 << 20
export const SERVER_OPTIONS = { maxHeaderSize: MOST_HEADER_BYTES }
const HTTP2_OPTIONS = {
  maxSendHeaderBlockLength: MOST_HEADER_BYTES,
  settings: { maxHeaderListSize: MOST_HEADER_BYTES },
}

/** Makes a server of a listener. */
export type Create = (listener: RequestListener) => Server

export const createHttp1: Create = (listener) => createServer(SERVER_OPTIONS, listener)

/** HTTP/2 without TLS, by the interface that is compatible with node:http, though its types are not. */
export const createHttp2: Create = (listener) => createHttp2Server(HTTP2_OPTIONS, listener as never)

/** The open sessions of servers of HTTP/2, which have no method to close them. */
const sessionsOf = new WeakMap<Server, Set<ServerHttp2Session>>()

export function trackSessions(server: Server): void {
  const sessions = new Set<ServerHttp2Session>()
  sessionsOf.set(server, sessions)
  server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
  })
}

export function closeSessions(server: Server): void {
  for (const session of sessionsOf.get(server) ?? []) session.destroy()
}

/** Listens on a free port of this machine. Resolves with the URL. */
export async function listen(server: Server): Promise<string> {
  trackSessions(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** What limiters of all frameworks have. */
interface Closable {
  reset(key: never): Promise<void>
  stats(): Promise<unknown>
  close(): Promise<void>
}

/** Serves by a server that has these limiters. */
export async function servedBy(server: Server, limiters: readonly Closable[]): Promise<Served> {
  return {
    url: await listen(server),
    reset: (key) => limiters[0]!.reset(key as never),
    stats: () => limiters[0]!.stats() as Promise<RateLimitStats>,
    async close() {
      await shut(server)
      await Promise.all(limiters.map((limiter) => limiter.close()))
    },
  }
}

/** Closes a server with all of its connections. */
export async function shut(server: Server & { closeAllConnections?(): void }): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections?.()
  closeSessions(server)
  await closed
}
