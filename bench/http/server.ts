/** A server in a process of its own, started by `start-server.ts` with the name of its handler. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { HANDLERS, type HandlerName } from './handlers.js'

/** Sent once when it listens, and once for each message that it gets. */
export interface ServerState {
  readonly port: number
  /** What the process has used of the processor so far, of all its threads. */
  readonly cpuUs: number
}

const server = createServer(HANDLERS[process.argv[2] as HandlerName]())
process.once('disconnect', () => process.exit())
process.on('message', report)
server.listen(0, '127.0.0.1', report)

function report(): void {
  const { port } = server.address() as AddressInfo
  const { user, system } = process.cpuUsage()
  process.send!({ port, cpuUs: user + system } satisfies ServerState)
}
