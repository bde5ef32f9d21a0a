import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { HandlerName } from './handlers.js'
import type { ServerState } from './server.js'

const SERVER = fileURLToPath(new URL('./server.js', import.meta.url))

export interface StartedServer {
  readonly port: number
  /** The server's processor time since its start, in microseconds. */
  cpuUs(): Promise<number>
  stop(): Promise<void>
}

/** @throws Error if the server's process ends before it listens */
export async function startServer(name: HandlerName): Promise<StartedServer> {
  const child = fork(SERVER, [name], { execArgv: [], stdio: ['ignore', 2, 2, 'ipc'] })
  const exit = once(child, 'exit')
  const ended = exit.then(() => Promise.reject(new Error(`the process of the server '${name}' ended`)))
  ended.catch(() => {}) // after stop() nothing awaits it
  const state = async (): Promise<ServerState> => {
    const [message] = await Promise.race([once(child, 'message'), ended])
    return message as ServerState
  }
  const { port } = await state()
  return {
    port,
    async cpuUs() {
      child.send('report')
      return (await state()).cpuUs
    },
    async stop() {
      child.disconnect()
      await exit
    },
  }
}
