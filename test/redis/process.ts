// A server in a process of its own, which ends no later than this process.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { poll } from './poll.js'
import { freePort } from './ports.js'
import { fileOf, isInstalled, missing, type Program } from './programs.js'

/** After SIGTERM a server has this long to exit, then it is killed. */
const EXIT_MS = 5_000
/** A port that was free may be taken when the server starts. */
const PORT_ATTEMPTS = 5
const LOG_LENGTH = 8_192

export interface Command {
  readonly program: Program
  /** The arguments. May write files into the folder, which is the working directory. */
  readonly args: (port: number, dir: string) => readonly string[] | Promise<readonly string[]>
  /** What the server prints when it listens. */
  readonly ready: RegExp
  /** Variables of its environment, beside those of this process. */
  readonly env?: NodeJS.ProcessEnv | undefined
  /** A folder to use instead of a temporary one: it is neither emptied nor removed. */
  readonly dir?: string | undefined
}

export interface Server {
  readonly port: number
  /** The id of the process; another one after `restart`. */
  readonly pid: number
  readonly isRunning: boolean
  readonly dir: string
  /** The end of what the server has printed. */
  readonly log: string
  /** Ends the process by SIGTERM and removes its temporary folder. A second call does nothing. */
  stop(): Promise<void>
  /** Kills the process. Its port then refuses connections. */
  kill(): Promise<void>
  /** Stops the process by SIGSTOP: connections stay open, without a reply. Resolves when it stands still. */
  pause(): Promise<void>
  /** Continues a paused process. */
  resume(): void
  /** Kills the process if it runs, and starts the server again on the same port, empty. */
  restart(): Promise<void>
}

const running = new Set<ChildProcess>()
const folders = new Set<string>()

process.on('exit', endAll)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    endAll()
    process.kill(process.pid, signal)
  })
}

function endAll(): void {
  for (const child of running) child.kill('SIGKILL')
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}

/** Starts a server on a free port. */
export async function startServer(command: Command): Promise<Server> {
  if (!isInstalled(command.program)) throw new Error(missing(command.program))
  const dir = command.dir ?? mkdtempSync(join(tmpdir(), `millrace-${command.program}-`))
  if (command.dir === undefined) folders.add(dir)
  for (let attempt = 1; ; attempt++) {
    const server = new ServerProcess(command, await freePort(), dir)
    try {
      await server.start()
      return server
    } catch (error) {
      if (server.wasPortFree || attempt === PORT_ATTEMPTS) {
        await server.stop()
        throw error
      }
    }
  }
}

class ServerProcess implements Server {
  readonly #command: Command
  readonly port: number
  readonly dir: string
  log = ''
  #child: ChildProcess | undefined
  #exited: Promise<unknown> = Promise.resolve()

  constructor(command: Command, port: number, dir: string) {
    this.#command = command
    this.port = port
    this.dir = dir
  }

  get pid(): number {
    if (this.#child?.pid === undefined) throw new Error(`${this.#command.program} does not run`)
    return this.#child.pid
  }

  get isRunning(): boolean {
    return this.#child !== undefined
  }

  get wasPortFree(): boolean {
    return !/address already in use/i.test(this.log)
  }

  /** Starts the process and resolves when it listens. */
  async start(): Promise<void> {
    const { program, ready, env } = this.#command
    const args = await this.#command.args(this.port, this.dir)
    const child = spawn(fileOf(program), args, {
      cwd: this.dir,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    await once(child, 'spawn')
    this.log = ''
    this.#child = child
    running.add(child)
    this.#exited = once(child, 'exit').finally(() => {
      running.delete(child)
      if (this.#child === child) this.#child = undefined
    })
    const listens = new Promise<void>((resolve) => {
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (text: string) => {
          this.log = (this.log + text).slice(-LOG_LENGTH)
          if (ready.test(this.log)) resolve()
        })
    })
    const ended = once(child, 'close').then(([code]) => {
      throw new Error(`${fileOf(program)} ended with ${code}: ${this.log}`)
    })
    await Promise.race([listens, ended])
    setReferenced(child, false)
  }

  async stop(): Promise<void> {
    this.resume()
    await this.#end('SIGTERM')
    if (folders.delete(this.dir)) rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 })
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  async pause(): Promise<void> {
    const { pid } = this
    process.kill(pid, 'SIGSTOP')
    if (process.platform === 'linux')
      await poll(() => / \([^)]*\) T /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')), 'the pause')
  }

  resume(): void {
    this.#child?.kill('SIGCONT')
  }

  async restart(): Promise<void> {
    await this.kill()
    if (folders.has(this.dir))
      for (const name of readdirSync(this.dir)) rmSync(join(this.dir, name), { recursive: true })
    await this.start()
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child
    if (child === undefined) return
    setReferenced(child, true)
    child.kill(signal)
    const timer = setTimeout(() => child.kill('SIGKILL'), EXIT_MS)
    await this.#exited
    clearTimeout(timer)
  }
}

/** Whether a process keeps this one from exiting by itself. It must not when a test has failed to stop it. */
function setReferenced(child: ChildProcess, isReferenced: boolean): void {
  const method = isReferenced ? 'ref' : 'unref'
  child[method]()
  for (const stream of [child.stdout, child.stderr]) (stream as Socket)[method]()
}
