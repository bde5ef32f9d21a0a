import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { HandlerName } from './handlers.js'
import type { ServerState } from './server.js'

const SERVER = fileURLToPath(new URL('./server.js', import.meta.url))

export interface StartedServer {
  readonly port: number
  /** What it has used of the processor up to now, in microseconds. */
  cpuUs(): Promise<number>
  stop(): Promise<void>
}

/** @throws Error where it ends before it listens */
export async function startServer(name: HandlerName): Promise<StartedServer> {
  const child = fork(SERVER, [name], { execArgv: [], stdio: ['ignore', 2, 2, 'ipc'] })
  const exit = once(child, 'exit')
  const ended = exit.then(() => Promise.reject(new Error(`the server '${name}' ended`)))
  ended.catch(() => {}) // at its stop nobody asks any more
  const state = async (): Promise<ServerState> => {
    const [answer] = await Promise.race([once(child, 'message'), ended])
    return answer as ServerState
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
