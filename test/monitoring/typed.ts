// Commands of a page, typed as its reader does: with other ports, in a folder of their own.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { run } from '../package/project.js'
import { readText } from '../package/root.js'

/** The sh blocks of a page, each with its lines. */
export function shellBlocks(page: string): string[][] {
  return [...readText(page).matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, code]) => code!.trim().split('\n'))
}

export interface Shell {
  /** Runs a line to its end and returns what it prints; one that ends in `&` is started. */
  type(line: string): Promise<string>
  /** What lines with `&` have printed. */
  readonly printed: string
  /** Ends what still runs. */
  end(): Promise<void>
}

/** @param replace makes of a line of the page the one to run */
export function openShell(folder: string, env: NodeJS.ProcessEnv, replace: (line: string) => string): Shell {
  const started: ChildProcess[] = []
  let printed = ''
  return {
    async type(line) {
      const command = replace(line)
      const background = / &$/.test(command)
      if (!background) {
        const { code, out, err } = await run('bash', ['-c', command], folder, env)
        if (code !== 0) throw new Error(`${command}: ended with ${code}\n${out}${err}`)
        return out
      }
      // A process group of its own: a loop is a shell with its commands.
      const child = spawn('bash', ['-c', command.slice(0, -2)], {
        ...{ cwd: folder, env, detached: true },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (text) => (printed += text))
      await once(child, 'spawn')
      started.push(child)
      return ''
    },
    get printed() {
      return printed
    },
    async end() {
      for (const child of started.reverse()) {
        if (child.exitCode !== null || child.signalCode !== null) continue
        const ended = once(child, 'exit')
        process.kill(-child.pid!, 'SIGTERM')
        await ended
      }
    },
  }
}
