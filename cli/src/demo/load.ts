import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import type { Client, Instance, Options } from 'autocannon'
import { CLIENT_HEADER } from './messages.js'

/** How a kind of client behaves. */
export interface Kind {
  readonly name: 'polite' | 'greedy'
  /** Its clients have numbers from here on. */
  readonly first: number
  readonly clients: number
  /** How often each asks in a second; undefined: as often as it is answered. */
  readonly perSecond: number | undefined
  /** How often each asks in one slice at most. */
  readonly most: number | undefined
}

/** What the clients of one kind were told. */
export interface Answers {
  admitted: number
  refused: number
  /** Neither: a lost connection, or another answer. */
  failed: number
}

/** What one slice of load, or several together, came to. Latencies in microseconds. */
export class Tally {
  readonly answers: Record<Kind['name'], Answers> = { polite: nothing(), greedy: nothing() }
  readonly latencyUs: RecordableHistogram = createHistogram()
  ms = 0

  get requests(): number {
    return Object.values(this.answers).reduce((sum, { admitted, refused }) => sum + admitted + refused, 0)
  }

  add({ answers, latencyUs, ms }: Tally): void {
    addAnswers(this.answers, answers)
    this.latencyUs.add(latencyUs)
    this.ms += ms
  }
}

/** Every so often autocannon looks whether it is to stop. */
const SAMPLE_MS = 50

/**
 * Lets every client ask for `path` for so long, each on a connection of its own, spread over the ports. `onAnswer` is
 * called for each answer.
 */
export async function load(
  ports: readonly number[],
  path: string,
  kinds: readonly Kind[],
  ms: number,
  signal: AbortSignal,
  onAnswer: (soFar: Tally) => void,
): Promise<Tally> {
  const { default: autocannon } = await import('autocannon')
  const tally = new Tally()
  const runs: Instance[] = []
  const ended: Promise<void>[] = []
  const startedAt = performance.now()
  for (const kind of kinds) {
    const answers = tally.answers[kind.name]
    for (const [i, port] of ports.entries()) {
      const numbers = numbersAt(kind, i, ports.length)
      if (numbers.length === 0) continue
      const options: Options & { sampleInt: number } = {
        url: `http://127.0.0.1:${port}${path}`,
        connections: numbers.length,
        duration: Math.ceil(ms / 1000) + 3600, // it is stopped below
        sampleInt: SAMPLE_MS,
        setupClient: (client: Client) => client.setHeaders({ [CLIENT_HEADER]: String(numbers.pop()) }),
        ...(kind.perSecond === undefined ? {} : { connectionRate: kind.perSecond }),
        ...(kind.most === undefined ? {} : { maxConnectionRequests: kind.most }),
      }
      let instance!: Instance
      const end = new Promise<void>((resolve, reject) => {
        instance = autocannon(options, (error) => (error ? reject(error) : resolve()))
      })
      ended.push(end)
      instance.on('response', (_client, status, _bytes, latencyMs) => {
        if (status === 200) answers.admitted++
        else if (status === 429) answers.refused++
        else answers.failed++
        tally.latencyUs.record(Math.max(1, Math.round(latencyMs * 1000)))
        onAnswer(tally)
      })
      instance.on('reqError', () => {
        answers.failed++
      })
      runs.push(instance)
    }
  }
  await sleep(ms, signal)
  tally.ms = performance.now() - startedAt
  for (const instance of runs) instance.stop()
  await Promise.all(ended)
  return tally
}

/** The kind's clients on the i-th of so many ports. */
function numbersAt({ first, clients }: Kind, i: number, ports: number): number[] {
  return Array.from({ length: clients }, (_, n) => n)
    .filter((n) => n % ports === i)
    .map((n) => first + n)
}

/** Resolves after so long, or when it is called off. */
function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done, { once: true })
    function done() {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
  })
}

export function addAnswers(sum: Tally['answers'], more: Tally['answers']): void {
  for (const name of ['polite', 'greedy'] as const) {
    sum[name].admitted += more[name].admitted
    sum[name].refused += more[name].refused
    sum[name].failed += more[name].failed
  }
}

export function nothing(): Answers {
  return { admitted: 0, refused: 0, failed: 0 }
}
