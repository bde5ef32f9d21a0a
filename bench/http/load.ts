import { createHistogram } from 'node:perf_hooks'
import autocannon from 'autocannon'
import { KEY_HEADER } from './handlers.js'

const CONNECTIONS = 64
const KEYS = 256
/** How soon after its time autocannon may stop. */
const SAMPLE_MS = 50
/** The first answer may take so long. autocannon's own time begins before it connects; on a busy machine that alone takes a second. */
const MAX_WAIT_MS = 30_000

export interface Load {
  readonly requests: number
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/**
 * Asks a server on this machine until `durationMs` after its first answer, each connection again as soon as it is answered, with one key
 * after the other. @throws Error for any answer but a good one, at once for a connection that fails
 */
export async function load(port: number, durationMs: number): Promise<Load> {
  const requests = Array.from({ length: KEYS }, (_, i) => ({
    headers: { [KEY_HEADER]: `user:${1_000 + i}` },
  }))
  const url = `http://127.0.0.1:${port}`
  // autocannon's own latencies are whole milliseconds, and most answers come within one.
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
  const { '2xx': answered, non2xx, errors } = result
  if (errors > 0 || non2xx > 0 || answered === 0) {
    throw new Error(`${answered} requests went well, ${non2xx} were refused, ${errors} failed`)
  }
  return {
    requests: answered,
    requestsPerSecond: answered / seconds,
    p50Ms: latencyUs.percentile(50) / 1_000,
    p99Ms: latencyUs.percentile(99) / 1_000,
  }
}
