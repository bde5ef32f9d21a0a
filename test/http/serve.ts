import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'

/** Listens on a free port of this machine. Resolves with the URL. */
export async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Closes a server with all of its connections. */
export async function shut(server: Server & { closeAllConnections?(): void }): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections?.()
  await closed
}
