import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { SharedLimiter } from 'millrace'
import { UsageError } from '../terminal.js'
import type { Engine, ServerReply, ServerRequest, ServerTask, Slice } from './messages.js'

/**
 * The threads of the demo's server. They share one limiter; each has its own port, as Node 20 cannot share a
 * port.
 */
export class Servers {
  readonly ports: number[] = []
  readonly #threads: Worker[] = []

  /** @throws UsageError if a port is not available */
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
    await this.#request('start')
  }

  /** Ends the slice and returns the record of each thread. */
  async stopSlice(): Promise<Slice[]> {
    return (await this.#request('stop')).filter((reply) => reply.type === 'stopped')
  }

  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.terminate()))
  }

  #request(request: ServerRequest): Promise<ServerReply[]> {
    return Promise.all(
      this.#threads.map((thread) => {
        const reply = replyOf(thread)
        thread.postMessage(request)
        return reply
      }),
    )
  }
}

/** The thread's next message. Rejects if the thread throws. */
async function replyOf(thread: Worker): Promise<ServerReply> {
  const [reply] = await once(thread, 'message')
  return reply
}

function portError(port: number, { code, message }: { code: string | undefined; message: string }): string {
  const advice = 'choose another with --port, or omit --port to use a free one'
  if (code === 'EADDRINUSE') return `port ${port} is in use; ${advice}`
  if (code === 'EACCES') return `you have no permission to use port ${port}; ${advice}`
  return `the server could not listen: ${message}`
}
