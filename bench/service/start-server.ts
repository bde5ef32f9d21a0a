import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ServerName, ServerState } from './server.js'

const SERVER = fileURLToPath(new URL('./server.js', import.meta.url))

export interface StartedServer {
  readonly port: number
  state(): Promise<ServerState>
  stop(): Promise<void>
}

/** Starts a server in a process of its own. @throws Error if it ends before it listens */
export async function startServer(name: ServerName, maxKeys?: number): Promise<StartedServer> {
  const args = [SERVER, name, ...(maxKeys === undefined ? [] : [`${maxKeys}`])]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 2, 'ipc'] })
  const exit = once(child, 'exit')
  const ended = exit.then(() => Promise.reject(new Error(`the process of the server '${name}' ended`)))
  ended.catch(() => {}) // after stop() nothing awaits it
  const [line] = await Promise.race([once(createInterface(child.stdout!), 'line'), ended])
  return {
    port: Number(line),
    async state() {
      child.send('state')
      const [state] = await Promise.race([once(child, 'message'), ended])
      return state as ServerState
    },
    async stop() {
      child.kill('SIGTERM')
      await exit
    },
  }
}
