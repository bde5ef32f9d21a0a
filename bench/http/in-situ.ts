/**
 * `npm run bench:http -- --case in-situ`: what a limiter costs where it runs. Between two decisions a server
 * runs 20 microseconds of other code, so a decision finds little of its memory in the caches. A loop that
 * only decides does not show that. Here a server changes every quarter of a second between a limiter and
 * constant headers, under a constant load, and measures its own processor time per request.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { SIDES } from '../batches.js'
import { type Benchmark, type Contender, figureOf, type Goal, type Round, ratioOf } from '../benchmark.js'
import { loadInSitu } from './in-situ-load.js'
import { BASELINE, IN_SITU_SERVERS, type ServerName } from './in-situ-modes.js'
import { type Listening, SLICE_MS, type Slice } from './in-situ-slices.js'

const SERVER = fileURLToPath(new URL('./in-situ-server.js', import.meta.url))
/** How often each of the two modes is measured. */
const CYCLES = { full: 8, quick: 5 }
/** The first cycles, in which V8 compiles, do not count. */
const WARM_UP_CYCLES = 4
/** The load lasts longer than the slices, which take a little more than their time. */
const LONGER_MS = 3_000

const WITHOUT_ADDON = ', without the addon'
const MIDDLEWARE = 'rateLimit of Millrace'

export const inSitu: Benchmark = {
  title: 'servers under load: key, decision and all headers over the same server with constant headers',
  units: {
    overUs: "the server's processor time per request over constant headers, microseconds",
    perRequestUs: 'in all, microseconds',
  },
  contenders: Object.entries(IN_SITU_SERVERS).flatMap(([server, { modes }]) =>
    [BASELINE, ...Object.keys(modes)].flatMap((mode) => [
      serving(server as ServerName, mode),
      ...(mode === MIDDLEWARE ? [serving(server as ServerName, mode, WITHOUT_ADDON)] : []),
    ]),
  ),
  // A round takes two minutes. Turns show how much the same server differs from itself.
  rounds: { full: 9, quick: 2 },
  goals: [
    ['express', 'express-rate-limit'],
    ['fastify', '@fastify/rate-limit'],
  ].flatMap(([server, peer]) =>
    ['', WITHOUT_ADDON].map((build) => costGoal(server!, `${MIDDLEWARE}${build}`, peer!)),
  ),
}

/** A server's whole processor time of a request, judged if the limiters differ more than the baseline from itself. */
function costGoal(server: string, own: string, peer: string): Goal {
  const over = (mode: string) => (round: Round) => figureOf(round, `${server}: ${mode}`, 'overUs')
  return {
    target: 'P11',
    label: `${server}, processor time of a request: ${own} / ${peer}`,
    unit: 'x',
    value: ratioOf(`${server}: ${own}`, `${server}: ${peer}`, 'perRequestUs'),
    atMost: 1,
    noise: {
      difference: (round) => over(own)(round) - over(peer)(round),
      itself: over(BASELINE),
    },
  }
}

function serving(server: ServerName, mode: string, build: '' | typeof WITHOUT_ADDON = ''): Contender {
  return {
    name: `${server}: ${mode}${build}`,
    async measure({ quick }) {
      if (build !== '') process.env.MILLRACE_NATIVE = SIDES.TypeScript // the server inherits it
      return costOf(await slicesOf(server, mode, quick ? CYCLES.quick : CYCLES.full))
    },
  }
}

/** Starts the server and loads it. Returns `count` slices of each of its two modes. */
async function slicesOf(server: ServerName, mode: string, count: number): Promise<Slice[]> {
  const child = fork(SERVER, [server, mode], { execArgv: [], stdio: ['ignore', 2, 2, 'ipc'] })
  const ended = once(child, 'exit').then(() => Promise.reject(new Error(`the server '${server}' ended`)))
  ended.catch(() => {}) // after the last message nothing awaits it
  const { port } = (await Promise.race([messageOf(child), ended])) as Listening
  const slices = (WARM_UP_CYCLES + count) * 2
  const measured = Promise.race([messageOf(child), ended])
  child.send({ slices })
  const [all] = await Promise.all([measured, loadInSitu(port, slices * SLICE_MS + LONGER_MS)])
  child.disconnect()
  return (all as Slice[]).slice(WARM_UP_CYCLES * 2)
}

const messageOf = async (child: ChildProcess): Promise<unknown> => (await once(child, 'message'))[0]

/**
 * The processor time of a request in the measured mode, in all and over the baseline. Other work on the
 * machine can only add to the time of a slice. So the lower quartiles of both modes are compared.
 * @throws Error for a slice without requests
 */
export function costOf(slices: readonly Slice[]): { overUs: number; perRequestUs: number } {
  const [baselineUs, perRequestUs] = [0, 1].map((mode) => {
    const times = slices.filter((slice) => slice.mode === mode).map(perRequest)
    return times.toSorted((a, b) => a - b)[times.length >> 2]!
  })
  return { overUs: perRequestUs! - baselineUs!, perRequestUs: perRequestUs! }
}

function perRequest({ requests, cpuUs }: Slice): number {
  if (requests === 0) throw new Error('a slice of time had no requests')
  return cpuUs / requests
}
