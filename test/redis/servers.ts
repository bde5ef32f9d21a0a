// Redis servers of tests, on free ports of loopback, without persistence.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The server's binary: redis-server, or another one such as valkey-server. */
export const SERVER = process.env.MILLRACE_REDIS_SERVER ?? 'redis-server'

const running = new Set<RedisServer>()
process.once('exit', () => {
  for (const server of running) server.remove()
})

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

export async function startRedis(args: readonly string[] = []): Promise<RedisServer> {
  const server = new RedisServer(await freePort(), args)
  await server.start()
  return server
}

export class RedisServer {
  readonly port: number
  readonly #args: readonly string[]
  readonly #folder = mkdtempSync(join(tmpdir(), 'millrace-redis-'))
  #child: ChildProcess | undefined

  constructor(port: number, args: readonly string[]) {
    this.port = port
    this.#args = args
  }

  /** Starts the server, empty, and waits until it accepts connections. */
  async start(): Promise<void> {
    const own = ['--port', `${this.port}`, '--bind', '127.0.0.1', '--save', '', '--dir', this.#folder]
    this.#child = spawn(SERVER, [...own, ...this.#args], { stdio: ['ignore', 'pipe', 'inherit'] })
    running.add(this)
    let said = ''
    for await (const chunk of this.#child.stdout!) {
      said += chunk
      if (/[Rr]eady to accept connections/.test(said)) break
    }
    if (!(await isListening(this.port))) throw new Error(`${SERVER} has not started: ${said}`)
  }

  /** Lets this process end before the server, which then ends, too. */
  unref(): void {
    const child = this.#child!
    child.unref()
    ;(child.stdout as Socket).unref()
  }

  /** Stops the process where it is: connections stay open, and nothing answers. */
  pause(): void {
    this.#child!.kill('SIGSTOP')
  }

  resume(): void {
    this.#child!.kill('SIGCONT')
  }

  async kill(): Promise<void> {
    const child = this.#child!
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  async stop(): Promise<void> {
    await this.kill()
    this.remove()
  }

  remove(): void {
    this.#child?.kill('SIGKILL')
    rmSync(this.#folder, { recursive: true, force: true })
    running.delete(this)
  }
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => socket.end(() => resolve(true)))
    socket.once('error', () => resolve(false))
  })
}
