import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../../../../cli/dist/main.js', import.meta.url))
const INTERVAL_MS = 10
const MOST_MS = 60_000

/** `millrace config` in a process of its own. */
export interface Running {
  readonly child: ChildProcess
  /** What it has printed so far. */
  readonly out: () => string
  readonly ended: Promise<{ code: number | null; out: string; err: string }>
}

export function started(args: string[], env: NodeJS.ProcessEnv = {}): Running {
  const child = spawn(process.execPath, [main, 'config', ...args], {
    stdio: 'pipe',
    env: { ...process.env, ...env },
  })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk) => (out += chunk))
  child.stderr.on('data', (chunk) => (err += chunk))
  child.stdin.on('error', () => {}) // it may end before it has read everything
  const ended = new Promise<{ code: number | null; out: string; err: string }>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, out, err }))
  })
  return { child, out: () => out, ended }
}

/** Waits for what no event tells. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + MOST_MS
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`never came: ${isSo}`)
    await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS))
  }
}
