import { Agent, request } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type ClientLimiter, createClient } from 'millrace/client'
import { type Benchmark, figureOf, type Round } from '../benchmark.js'
import { median } from '../statistics.js'
import { CONNECTIONS } from './load.js'
import { startServer } from './start-server.js'

/** Decisions that a program asks for in one turn of its event loop. */
const TOGETHER = 256
/** So many such turns are on their way at once, so that client and engine both have work. */
const IN_FLIGHT = 4
const KEYS = 5_000
/** Decisions of each before the first that is measured. */
const WARM_UP = { full: 40_000, quick: 20_000 }
const SLICE_MS = { full: 500, quick: 300 }
const SLICES = { full: 16, quick: 6 }
const TURNS = 'the client and one POST a decision, by turns'

type Ask = (key: string) => Promise<boolean>

/** What a program without the client does: connections that stay open, and a request for each decision. */
function onePost(port: number, agent: Agent): Ask {
  return (key) =>
    new Promise((resolve, reject) => {
      const options = { agent, host: '127.0.0.1', port, method: 'POST', path: '/v1/check' }
      const body = JSON.stringify({ key })
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
      const sent = request({ ...options, headers }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
        response.on('end', () => resolve(JSON.parse(text).allowed))
      })
      sent.on('error', reject)
      sent.end(body)
    })
}

/** Decisions a second, for so long. @throws Error if one is not an admission */
function speedFor(ask: Ask, durationMs: number): Promise<number> {
  return speedUntil(ask, (_, elapsedMs) => elapsedMs >= durationMs)
}

async function speedUntil(
  ask: Ask,
  isOver: (decisions: number, elapsedMs: number) => boolean,
): Promise<number> {
  const startMs = performance.now()
  let decisions = 0
  const askOn = async () => {
    while (!isOver(decisions, performance.now() - startMs)) {
      const asked = Array.from({ length: TOGETHER }, (_, i) =>
        ask(`user:${1_000_000 + ((decisions + i) % KEYS)}`),
      )
      decisions += TOGETHER
      if (!(await Promise.all(asked)).every(Boolean)) throw new Error('a refusal')
    }
  }
  const turns = Array.from({ length: IN_FLIGHT }, async (_, i) => {
    for (let turn = 0; turn < i; turn++) await nextTurn() // each begins in a turn of its own
    await askOn()
  })
  await Promise.all(turns)
  return (1_000 * decisions) / (performance.now() - startMs)
}

const byClient =
  (client: ClientLimiter): Ask =>
  async (key) => {
    const { allowed, source } = await client.check(key)
    if (source !== 'service') throw new Error(`decided by ${source}`)
    return allowed
  }

const figure = (name: string) => (round: Round) => figureOf(round, TURNS, name)
const ratio = (round: Round) => figure('client')(round) / figure('onePost')(round)

export const serviceBatching: Benchmark = {
  title: `${IN_FLIGHT} times ${TOGETHER} decisions at a time, asked by the client, and by one POST each on ${CONNECTIONS} connections`,
  units: {
    client: 'decisions a second: the client',
    onePost: 'decisions a second: one POST each',
    itself: 'one POST each, every other slice / the rest, less 1',
  },
  rounds: { full: 3, quick: 2 },
  contenders: [
    {
      name: TURNS,
      async measure({ quick }) {
        const effort = quick ? 'quick' : 'full'
        const server = await startServer('engine')
        const client = createClient({ url: `http://127.0.0.1:${server.port}`, deadline: '1m' })
        const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
        const asks = [byClient(client), onePost(server.port, agent)]
        const speeds: number[][] = asks.map(() => [])
        for (const ask of asks) await speedUntil(ask, (decisions) => decisions >= WARM_UP[effort])
        for (let i = 0; i < SLICES[effort]; i++)
          for (const [j, ask] of asks.entries()) speeds[j]!.push(await speedFor(ask, SLICE_MS[effort]))
        agent.destroy()
        await client.close()
        await server.stop()
        const [some, others] = [0, 1].map((rest) => median(speeds[1]!.filter((_, i) => i % 2 === rest)))
        return { client: median(speeds[0]!), onePost: median(speeds[1]!), itself: some! / others! - 1 }
      },
    },
  ],
  goals: [
    {
      target: 'S3',
      label: 'decisions a second: the client / one POST each',
      unit: 'x',
      value: ratio,
      atLeast: 5,
      noise: { difference: (round) => ratio(round) - 5, itself: figure('itself') },
    },
  ],
}
