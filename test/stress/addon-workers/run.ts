// Starts threads that load the addon, decide with it, and end in one of four ways. In half of the processes
// the main thread loads the addon too. A crash is a process that does not exit by itself, or a thread that
// ends in another way than it should.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Progress } from '../../long-runs/progress.js'
import { inCommas } from '../../long-runs/progress.js'

export const ENDINGS = ['returns', 'exits', 'is terminated', 'throws'] as const
export type Ending = (typeof ENDINGS)[number]

export interface Found {
  starts: number
  processes: number
  crashes: string[]
}

/** The most threads of one process; two run at a time. */
const MOST_STARTS = 125
const TIMEOUT_MS = 300_000

/** Runs the processes with the binary `node`. */
export async function startAndEnd(starts: number, node: string, progress: Progress): Promise<Found> {
  const found: Found = { starts: 0, processes: 0, crashes: [] }
  while (found.starts < starts && found.crashes.length === 0) {
    const count = Math.min(MOST_STARTS, Math.ceil(starts / 2), starts - found.starts)
    const isInMain = found.processes % 2 === 0
    const setup = `${count} starts, addon ${isInMain ? 'in the main thread too' : 'only in threads'}`
    const crash = await runProcess(node, count, isInMain)
    found.processes++
    found.starts += count
    if (crash !== undefined) found.crashes.push(`${setup}: ${crash}`)
    progress.at(summaryOf(found))
  }
  return found
}

export function summaryOf({ starts, processes, crashes }: Found): string {
  return `${inCommas(starts)} starts of threads with the addon in ${processes} processes: ${crashes.length} crashes`
}

/** Runs one process. Resolves to undefined if it exits as expected, else to a description of its end. */
function runProcess(node: string, starts: number, isInMain: boolean): Promise<string | undefined> {
  const program = fileURLToPath(new URL('./starter.js', import.meta.url))
  return new Promise((resolve, reject) => {
    const child = spawn(node, [program, String(starts), String(isInMain)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, MILLRACE_NATIVE: '1' },
      timeout: TIMEOUT_MS,
    })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (output += chunk))
    child.on('error', reject)
    child.on('close', (code, signal) => {
      const isComplete = code === 0 && output.trim() === `${starts} ended`
      resolve(isComplete ? undefined : `exited with ${signal ?? code}: ${output}`)
    })
  })
}
