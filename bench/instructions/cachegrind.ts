/**
 * Counts what a server executes for a request, by valgrind's cachegrind: instructions repeat where times don't. Two runs
 * of the same server get different numbers of requests, and the difference is divided by that of the requests: what
 * the start costs cancels out.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { compile, findCompiler } from '../compiler.js'
import { sendRequests } from './client.js'

const SERVER = fileURLToPath(new URL('./server.js', import.meta.url))
const CLOCK = fileURLToPath(new URL('../../../bench/instructions/clock.cc', import.meta.url))
/**
 * One thread, no concurrent compiling and no random seed; with the clock of `clock.cc` all depends on the requests alone.
 * An old space that need not grow: one collection of the whole heap costs as much as 100 requests, and comes at another
 * request in each run. A young space that is as large from the start as in a server that has run for a while: it grows with
 * what survives the start, and beyond 8 MB each line that a request allocates is a miss of the last level.
 */
const NODE_OPTIONS = [
  '--single-threaded',
  '--predictable',
  '--hash-seed=1',
  '--random-seed=1',
  '--initial-old-space-size=512',
  '--min-semi-space-size=16',
  '--max-semi-space-size=16',
]

/** Caches as many servers have them, so that the simulation is the same on all machines. */
const CACHES = ['--I1=32768,8,64', '--D1=32768,8,64', '--LL=8388608,16,64']

/** The events of cachegrind by their names in its file. */
export type Events = Readonly<Record<'Ir' | 'I1mr' | 'ILmr' | 'D1mr' | 'D1mw' | 'DLmr' | 'DLmw', number>>

/** What is missing on this machine; undefined: nothing. */
export const missing = (): string | undefined =>
  spawnSync('valgrind', ['--version']).error !== undefined
    ? 'valgrind is not installed'
    : findCompiler() === undefined
      ? 'no C++ compiler found'
      : undefined

/** What a request costs, from one number of requests since the start of the server to another. */
export interface RequestCost {
  readonly instructions: number
  readonly firstLevel: number
  readonly lastLevel: number
}

/** What a request costs between each two of these numbers of requests. Runs as many servers at once as there are cores. */
export async function countRequests(
  server: string,
  mode: string,
  counts: readonly number[],
): Promise<RequestCost[]> {
  const events: Events[] = []
  const rest = [...counts.entries()].reverse() // the longest first
  const runNext = async () => {
    for (let next = rest.shift(); next !== undefined; next = rest.shift())
      events[next[0]] = await eventsOf(server, mode, next[1])
  }
  await Promise.all(Array.from({ length: availableParallelism() }, runNext))
  return counts.slice(1).map((to, i) => costOf(events[i]!, events[i + 1]!, to - counts[i]!))
}

/** The difference of two runs, for each of the requests by which they differ. */
export function costOf(before: Events, after: Events, requests: number): RequestCost {
  const each = (...names: readonly (keyof Events)[]) =>
    names.reduce((sum, name) => sum + after[name] - before[name], 0) / requests
  return {
    instructions: each('Ir'),
    firstLevel: each('I1mr', 'D1mr', 'D1mw'),
    lastLevel: each('ILmr', 'DLmr', 'DLmw'),
  }
}

/** The events of a whole run of a server, which serves so many requests. */
async function eventsOf(server: string, mode: string, requests: number): Promise<Events> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-instructions-'))
  try {
    const [file, clock] = [join(folder, 'events'), join(folder, 'clock.so')]
    compile(CLOCK, clock, '-shared', '-fPIC')
    const options = ['-q', '--tool=cachegrind', '--cache-sim=yes', ...CACHES, `--cachegrind-out-file=${file}`]
    // Without random addresses, which decide what a table of pointers does.
    const args = ['-R', 'valgrind', ...options, process.execPath, ...NODE_OPTIONS, SERVER, server, mode]
    // One thread of libuv: modules are loaded in one order.
    const env = { ...process.env, LD_PRELOAD: clock, UV_THREADPOOL_SIZE: '1' }
    await serve(spawn('setarch', args, { env, stdio: ['ignore', 'pipe', 2] }), requests)
    return eventsIn(readFileSync(file, 'utf8'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function serve(server: ChildProcess, requests: number): Promise<void> {
  const exit = once(server, 'exit')
  const [port] = await Promise.race([
    once(createInterface(server.stdout!), 'line'),
    exit.then(([code]) => Promise.reject(new Error(`the server ended with ${code}`))),
  ])
  try {
    await sendRequests(Number(port), requests)
  } finally {
    server.kill('SIGTERM')
    await exit
  }
}

/** Reads the sums of a file of cachegrind. @throws Error if it has none */
export function eventsIn(text: string): Events {
  const names = /^events: (.*)$/m.exec(text)?.[1]?.split(' ')
  const sums = /^summary: (.*)$/m.exec(text)?.[1]?.split(' ')
  if (names === undefined || sums === undefined) throw new Error('cachegrind has written no summary')
  return Object.fromEntries(names.map((name, i) => [name, Number(sums[i])])) as Events
}
