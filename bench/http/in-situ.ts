/**
 * `npm run bench:http -- --case in-situ`: what a limiter costs where it runs. Between two decisions a server
 * runs 20 microseconds of other code, so a decision finds little of its memory in the caches. A loop that
 * only decides does not show that. Here one server process changes what it does with a request every quarter
 * of a second, under a constant load, and measures its own processor time per request.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import Table from 'cli-table3'
import { machineLine, number, took } from '../format.js'
import { describeMachine } from '../machine.js'
import { median } from '../statistics.js'
import { clientName, loadInSitu } from './in-situ-load.js'
import { IN_SITU_SERVERS } from './in-situ-modes.js'
import { type Listening, SLICE_MS, type Slice } from './in-situ-slices.js'

const SERVER = fileURLToPath(new URL('./in-situ-server.js', import.meta.url))
/** How often each mode is measured. */
const CYCLES = { full: 24, quick: 6 }
/** The first cycles, in which V8 compiles, do not count. */
const WARM_UP_CYCLES = 3
/** The load lasts longer than the slices, which take a little more than their time. */
const LONGER_MS = 3_000

/** The processor time of a mode per request, in microseconds. */
export interface Cost {
  readonly mode: string
  /** The median of all slices. */
  readonly perRequestUs: number
  /** Over the first mode in the same cycle: the median, and the quartiles. */
  readonly overBaselineUs: number
  readonly quartilesUs: readonly [number, number]
}

/** Measures all servers, one after the other, and prints the costs of their modes. */
export async function measureInSitu({ quick, json }: { quick: boolean; json: boolean }): Promise<void> {
  const machine = describeMachine()
  const client = clientName()
  const startMs = performance.now()
  if (!json) console.log(`${machineLine(machine)}\nLoad: ${client}.`)
  const servers: Record<string, readonly Cost[]> = {}
  for (const [server, modes] of Object.entries(IN_SITU_SERVERS)) {
    const names = Object.keys(modes)
    const costs = costsOf(names, await cyclesOf(server, names.length, quick ? CYCLES.quick : CYCLES.full))
    if (!json) console.log(`\n${server}\n${render(costs)}`)
    servers[server] = costs
  }
  if (json) console.log(JSON.stringify({ machine, quick, client, servers }, null, 2))
  else console.log(`Duration: ${took(performance.now() - startMs)}.`)
}

/** Starts the server and loads it. Returns `count` cycles of a slice of each mode. */
async function cyclesOf(server: string, modes: number, count: number): Promise<Slice[][]> {
  const child = fork(SERVER, [server], { execArgv: [], stdio: ['ignore', 2, 2, 'ipc'] })
  const ended = once(child, 'exit').then(() => Promise.reject(new Error(`the server '${server}' ended`)))
  ended.catch(() => {}) // after the last message nothing awaits it
  const { port } = (await Promise.race([messageOf(child), ended])) as Listening
  const slices = (WARM_UP_CYCLES + count) * modes
  const measured = Promise.race([messageOf(child), ended])
  child.send({ slices })
  const [all] = await Promise.all([measured, loadInSitu(port, slices * SLICE_MS + LONGER_MS)])
  child.disconnect()
  const first = WARM_UP_CYCLES * modes
  return Array.from({ length: count }, (_, i) =>
    (all as Slice[]).slice(first + i * modes, first + (i + 1) * modes),
  )
}

const messageOf = async (child: ChildProcess): Promise<unknown> => (await once(child, 'message'))[0]

/** The costs of the modes, by cycles of one slice of each mode. @throws Error for a slice without requests */
export function costsOf(modes: readonly string[], cycles: readonly (readonly Slice[])[]): Cost[] {
  const times = cycles.map((slices) => modes.map((_, mode) => perRequestUs(slices, mode)))
  return modes.map((mode, i) => {
    const over = times.map((each) => each[i]! - each[0]!).toSorted((a, b) => a - b)
    return {
      mode,
      perRequestUs: median(times.map((each) => each[i]!)),
      overBaselineUs: median(over),
      quartilesUs: [over[over.length >> 2]!, over[(3 * over.length) >> 2]!],
    }
  })
}

function perRequestUs(slices: readonly Slice[], mode: number): number {
  const { requests, cpuUs } = slices.find((slice) => slice.mode === mode)!
  if (requests === 0) throw new Error('a slice of time had no requests')
  return cpuUs / requests
}

const HEAD = ["the server's processor time per request", 'microseconds', 'over the baseline', 'quartiles']

function render(costs: readonly Cost[]): string {
  const table = new Table({ head: HEAD, style: { head: [], border: [] } })
  for (const { mode, perRequestUs, overBaselineUs, quartilesUs } of costs) {
    const [low, high] = quartilesUs.map(number)
    table.push([mode, number(perRequestUs), number(overBaselineUs), `${low} to ${high}`])
  }
  return table.toString()
}
