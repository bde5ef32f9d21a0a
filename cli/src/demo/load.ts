import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import type { Client, Instance, Options } from 'autocannon'
import { CLIENT_HEADER } from './messages.js'

/** A kind of client and its behaviour. */
export interface Kind {
  readonly name: 'polite' | 'greedy'
  /** The number of its first client; the others follow. */
  readonly first: number
  readonly clients: number
  /** Requests per client and second; undefined: each client sends its next request after each response. */
  readonly perSecond: number | undefined
  /** The most requests per client in one slice. */
  readonly most: number | undefined
}

/** Counts of the responses to one kind of client. */
export interface Responses {
  admitted: number
  refused: number
  /** Lost connections and responses with another status. */
  failed: number
}

/** The results of one or more slices of load. Latencies are in microseconds. */
export class Tally {
  readonly responses: Record<Kind['name'], Responses> = { polite: noResponses(), greedy: noResponses() }
  readonly latencyUs: RecordableHistogram = createHistogram()
  ms = 0

  get requests(): number {
    return Object.values(this.responses).reduce((sum, { admitted, refused }) => sum + admitted + refused, 0)
  }

  add({ responses, latencyUs, ms }: Tally): void {
    addResponses(this.responses, responses)
    this.latencyUs.add(latencyUs)
    this.ms += ms
  }
}

/** The interval at which autocannon checks whether to stop. */
const SAMPLE_MS = 50

/**
 * Lets every client request `path` for `ms` milliseconds. Each has its own connection; the clients are spread
 * over the ports. Calls `onResponse` for each response.
 */
export async function load(
  ports: readonly number[],
  path: string,
  kinds: readonly Kind[],
  ms: number,
  signal: AbortSignal,
  onResponse: (soFar: Tally) => void,
): Promise<Tally> {
  const { default: autocannon } = await import('autocannon')
  const tally = new Tally()
  const runs: Instance[] = []
  const ended: Promise<void>[] = []
  const startedAt = performance.now()
  for (const kind of kinds) {
    const responses = tally.responses[kind.name]
    for (const [i, port] of ports.entries()) {
      const numbers = numbersAt(kind, i, ports.length)
      if (numbers.length === 0) continue
      const options: Options & { sampleInt: number } = {
        url: `http://127.0.0.1:${port}${path}`,
        connections: numbers.length,
        duration: Math.ceil(ms / 1000) + 3600, // stop() below ends it earlier
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
        if (status === 200) responses.admitted++
        else if (status === 429) responses.refused++
        else responses.failed++
        tally.latencyUs.record(Math.max(1, Math.round(latencyMs * 1000)))
        onResponse(tally)
      })
      instance.on('reqError', () => {
        responses.failed++
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

/** The numbers of the kind's clients on the i-th port. */
function numbersAt({ first, clients }: Kind, i: number, ports: number): number[] {
  return Array.from({ length: clients }, (_, n) => n)
    .filter((n) => n % ports === i)
    .map((n) => first + n)
}

/** Resolves after `ms` milliseconds, or when `signal` aborts. */
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

export function addResponses(sum: Tally['responses'], more: Tally['responses']): void {
  for (const name of ['polite', 'greedy'] as const) {
    sum[name].admitted += more[name].admitted
    sum[name].refused += more[name].refused
    sum[name].failed += more[name].failed
  }
}

export function noResponses(): Responses {
  return { admitted: 0, refused: 0, failed: 0 }
}
