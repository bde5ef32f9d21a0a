/** The server process. `start-server.ts` starts it with the name of a handler. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { HANDLERS, type HandlerName } from './handlers.js'

/** The message that the server sends when it listens, and as the reply to each message. */
export interface ServerState {
  readonly port: number
  /** Processor time of all threads of the process since its start, in microseconds. */
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
