// `millrace serve` as a process.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { root } from '../package/root.js'

export const MAIN = join(root, 'cli/dist/main.js')

/** A process that listens, or has ended. */
export interface Command {
  readonly process: ChildProcess
  /** Where it listens; empty if it has ended. */
  readonly url: string
  readonly stdout: string
  readonly stderr: string
  readonly code: number | null
  /** Resolves when its log has the text, after that of the call before. */
  logged(text: string): Promise<void>
  /** Ends it by SIGTERM. Resolves with its exit code. */
  end(): Promise<number | null>
}

/** Resolves when the command listens or ends. */
export async function command(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Command> {
  const child = spawn(process.execPath, [MAIN, 'serve', ...args], {
    env: { ...process.env, MILLRACE_SERVE_LOG_LEVEL: 'warn', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close')
  /** How much of the log `logged` has gone past. */
  let read = 0
  const command = {
    process: child,
    url: '',
    stdout: '',
    stderr: '',
    code: null as number | null,
    logged,
    end,
  }
  const listening = new Promise<void>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      command.stdout += text
      const [, url] = /^listening on (.*)\n/m.exec(command.stdout) ?? []
      if (url === undefined) return
      command.url = url
      resolve()
    })
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    command.stderr += text
  })
  await Promise.race([listening, closed])
  command.code = child.exitCode
  return command

  async function logged(text: string): Promise<void> {
    let at = command.stderr.indexOf(text, read)
    for (; at < 0; at = command.stderr.indexOf(text, read)) await once(child.stderr, 'data')
    read = at + text.length
  }

  async function end(): Promise<number | null> {
    child.kill('SIGTERM')
    await closed
    return child.exitCode
  }
}
