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
 * over the ports. Those without a rate have as many requests `inFlight` at a time. Calls `onResponse` for each response.
 */
export async function load(
  ports: readonly number[],
  path: string,
  kinds: readonly Kind[],
  { ms, inFlight }: { readonly ms: number; readonly inFlight: number },
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
      for (const options of optionsOf(kind, numbersAt(kind, i, ports.length), inFlight)) {
        const url = `http://127.0.0.1:${port}${path}`
        const duration = Math.ceil(ms / 1000) + 3600 // stop() below ends it earlier
        let instance!: Instance
        const end = new Promise<void>((resolve, reject) => {
          const all = { ...options, url, duration, sampleInt: SAMPLE_MS }
          instance = autocannon(all, (error) => (error ? reject(error) : resolve()))
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
  }
  await sleep(ms, signal)
  tally.ms = performance.now() - startedAt
  for (const instance of runs) instance.stop()
  await Promise.all(ended)
  return tally
}

/** The options of autocannon for these clients: one run of all of them, or one each, as its pipelines have one header. */
function optionsOf(kind: Kind, numbers: number[], inFlight: number): Omit<Options, 'url'>[] {
  if (numbers.length === 0) return []
  const { perSecond, most } = kind
  if (perSecond === undefined && inFlight > 1)
    return numbers.map((number) => ({
      connections: 1,
      pipelining: inFlight,
      headers: { [CLIENT_HEADER]: String(number) },
    }))
  return [
    {
      connections: numbers.length,
      setupClient: (client: Client) => client.setHeaders({ [CLIENT_HEADER]: String(numbers.pop()) }),
      ...(perSecond !== undefined && { connectionRate: perSecond }),
      ...(most !== undefined && { maxConnectionRequests: most }),
    },
  ]
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
