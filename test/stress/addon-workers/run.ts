// Threads that load the addon, decide by it, and end, in each of four ways, time after time; and that in processes whose main
// thread has loaded it, and in others where threads alone do. What is forbidden is that a process ends otherwise than by
// itself, or that a thread ends otherwise than it was to.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Progress } from '../../long-runs/progress.js'
import { inCommas } from '../../long-runs/progress.js'

export const WAYS_OF_ENDING = ['returns', 'exits', 'is terminated', 'throws'] as const
export type Ending = (typeof WAYS_OF_ENDING)[number]

export interface Found {
  starts: number
  processes: number
  crashes: string[]
}

/** The most threads of one process, of which two are there at a time. */
const MOST_STARTS = 125
const MOST_MS = 300_000

/** `node` is the binary that runs the processes. */
export async function startAndEnd(starts: number, node: string, progress: Progress): Promise<Found> {
  const found: Found = { starts: 0, processes: 0, crashes: [] }
  while (found.starts < starts && found.crashes.length === 0) {
    const count = Math.min(MOST_STARTS, Math.ceil(starts / 2), starts - found.starts)
    const isInMain = found.processes % 2 === 0
    const how = `${count} starts, addon ${isInMain ? 'in the main thread too' : 'in threads alone'}`
    const crash = await processOf(node, count, isInMain)
    found.processes++
    found.starts += count
    if (crash !== undefined) found.crashes.push(`${how}: ${crash}`)
    progress.at(summaryOf(found))
  }
  return found
}

export function summaryOf({ starts, processes, crashes }: Found): string {
  return `${inCommas(starts)} starts of threads with the addon in ${processes} processes: ${crashes.length} crashes`
}

/** How it ended, if not as it has to. */
function processOf(node: string, starts: number, isInMain: boolean): Promise<string | undefined> {
  const program = fileURLToPath(new URL('./starter.js', import.meta.url))
  return new Promise((resolve, reject) => {
    const child = spawn(node, [program, String(starts), String(isInMain)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, MILLRACE_NATIVE: '1' },
      timeout: MOST_MS,
    })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (output += chunk))
    child.on('error', reject)
    child.on('close', (code, signal) => {
      const isWhole = code === 0 && output.trim() === `${starts} ended`
      resolve(isWhole ? undefined : `ended with ${signal ?? code}: ${output}`)
    })
  })
}
