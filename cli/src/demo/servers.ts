import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { SharedLimiter } from 'millrace'
import { UsageError } from '../terminal.js'
import type { Engine, ServerReply, ServerRequest, ServerTask, Slice } from './messages.js'

/** The demo's server: threads of one limiter, each with a port of its own (Node 20 can't share one among threads). */
export class Servers {
  readonly ports: number[] = []
  readonly #threads: Worker[] = []

  /** @throws UsageError for a port that can't be had */
  static async start(
    shared: SharedLimiter,
    engine: Engine,
    threads: number,
    firstPort: number,
  ): Promise<Servers> {
    const servers = new Servers()
    try {
      for (let i = 0; i < threads; i++) {
        const port = firstPort === 0 ? 0 : firstPort + i
        const workerData: ServerTask = { shared, engine, port }
        const thread = new Worker(new URL('./server.js', import.meta.url), { workerData })
        servers.#threads.push(thread)
        const reply = await replyOf(thread)
        if (reply.type === 'failed') throw new UsageError(portError(port, reply))
        if (reply.type === 'listening') servers.ports.push(reply.port)
      }
      return servers
    } catch (error) {
      await servers.close()
      throw error
    }
  }

  async startSlice(): Promise<void> {
    await this.#ask('start')
  }

  /** What each thread saw since `startSlice`. */
  async stopSlice(): Promise<Slice[]> {
    return (await this.#ask('stop')).filter((reply) => reply.type === 'stopped')
  }

  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.terminate()))
  }

  #ask(request: ServerRequest): Promise<ServerReply[]> {
    return Promise.all(
      this.#threads.map((thread) => {
        const reply = replyOf(thread)
        thread.postMessage(request)
        return reply
      }),
    )
  }
}

/** The next message; rejects with what the thread threw. */
async function replyOf(thread: Worker): Promise<ServerReply> {
  const [reply] = await once(thread, 'message')
  return reply
}

function portError(port: number, { code, message }: { code: string | undefined; message: string }): string {
  const advice = 'choose another with --port, or leave --port out for any free one'
  if (code === 'EADDRINUSE') return `port ${port} is in use; ${advice}`
  if (code === 'EACCES') return `port ${port} is not allowed to you; ${advice}`
  return `the server could not listen: ${message}`
}
