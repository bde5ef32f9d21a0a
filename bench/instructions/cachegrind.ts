/**
 * Counts what a server executes for a request, by valgrind's cachegrind: instructions repeat where times don't. Two runs
 * of the same server get different numbers of requests, and the difference is divided by that of the requests: what
 * the start costs cancels out.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Figures } from '../benchmark.js'
import { sendRequests } from './client.js'

const SERVER = fileURLToPath(new URL('./server.js', import.meta.url))
/** One thread, no concurrent compiling and no random seed: what V8 does depends on the requests alone. */
const NODE_OPTIONS = ['--single-threaded', '--predictable', '--hash-seed=1', '--random-seed=1']

/** Caches as many servers have them, so that the simulation is the same on all machines. */
const CACHES = ['--I1=32768,8,64', '--D1=32768,8,64', '--LL=8388608,16,64']

/** The events of cachegrind by their names in its file. */
export type Events = Readonly<Record<'Ir' | 'I1mr' | 'ILmr' | 'D1mr' | 'D1mw' | 'DLmr' | 'DLmw', number>>

export const hasValgrind = (): boolean => spawnSync('valgrind', ['--version']).error === undefined

/** What a request costs between the request numbers `from` and `to`, counted from the start of the server. */
export async function countRequests(
  server: string,
  mode: string,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<Figures> {
  const before = await eventsOf(server, mode, from)
  const after = await eventsOf(server, mode, to)
  const each = (...names: readonly (keyof Events)[]) =>
    names.reduce((sum, name) => sum + after[name] - before[name], 0) / (to - from)
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
    const file = join(folder, 'events')
    const options = ['-q', '--tool=cachegrind', '--cache-sim=yes', ...CACHES, `--cachegrind-out-file=${file}`]
    const process_ = spawn(
      'valgrind',
      [...options, process.execPath, ...NODE_OPTIONS, SERVER, server, mode],
      {
        stdio: ['ignore', 'pipe', 2],
      },
    )
    await serve(process_, requests)
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
