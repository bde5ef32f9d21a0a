import { createHistogram } from 'node:perf_hooks'
import autocannon from 'autocannon'
import { KEY_HEADER } from './handlers.js'

export const CONNECTIONS = 64
const KEYS = 256
/** The interval at which autocannon checks whether to stop. */
const SAMPLE_MS = 50
/**
 * The most time for the first response. autocannon's own time starts before it connects, which can take a
 * second.
 */
const MAX_WAIT_MS = 30_000

export interface Load {
  readonly requests: number
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/**
 * Loads a server on this machine until `durationMs` after its first response. Each connection sends its next
 * request, with the next key, when it has a response.
 * @throws Error for any response that is not 2xx, and at once for a connection that fails
 */
export async function load(port: number, durationMs: number, keys = KEYS): Promise<Load> {
  const requests = Array.from({ length: keys }, (_, i) => ({
    headers: { [KEY_HEADER]: `user:${1_000 + i}` },
  }))
  const url = `http://127.0.0.1:${port}`
  // autocannon's own latencies are whole milliseconds; most responses take less than one.
  const latencyUs = createHistogram()
  let fromMs: number | undefined
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const options = {
      url,
      requests,
      connections: CONNECTIONS,
      duration: (MAX_WAIT_MS + durationMs) / 1_000,
      sampleInt: SAMPLE_MS,
    }
    const run = autocannon(options, (error, done) => (error ? reject(error) : resolve(done)))
    run.on('reqError', () => run.stop())
    run.on('response', (_client, _status, _bytes, responseMs) => {
      if (fromMs === undefined) {
        fromMs = performance.now()
        setTimeout(() => run.stop(), durationMs)
      }
      latencyUs.record(Math.max(1, Math.round(responseMs * 1_000)))
    })
  })
  const seconds = (performance.now() - (fromMs ?? 0)) / 1_000
  const { '2xx': succeeded, non2xx, errors } = result
  if (errors > 0 || non2xx > 0 || succeeded === 0) {
    throw new Error(`${succeeded} requests succeeded, ${non2xx} had another status, ${errors} failed`)
  }
  return {
    requests: succeeded,
    requestsPerSecond: succeeded / seconds,
    p50Ms: latencyUs.percentile(50) / 1_000,
    p99Ms: latencyUs.percentile(99) / 1_000,
  }
}
