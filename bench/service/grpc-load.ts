/** Loads a gRPC server of this machine with ShouldRateLimit, over raw HTTP/2: the client must not be what is measured. */
import { type ClientHttp2Session, connect } from 'node:http2'
import { createHistogram } from 'node:perf_hooks'

export const IN_FLIGHT = 64
const SESSIONS = 4
const KEYS = 5_000
const HEADERS = {
  ':method': 'POST',
  ':path': '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
  'content-type': 'application/grpc',
  te: 'trailers',
}

const field = (number: number, bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.from([8 * number + 2, bytes.length]), bytes])

/** The domain `test`, and a descriptor of one entry. */
const FRAMES: readonly Buffer[] = Array.from({ length: KEYS }, (_, i) => {
  const entry = [field(1, Buffer.from('user')), field(2, Buffer.from(`user:${1_000_000 + i}`))]
  const descriptor = field(1, Buffer.concat(entry))
  const message = Buffer.concat([field(1, Buffer.from('test')), field(2, descriptor)])
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
})

/** What came of a load. */
export interface Called {
  readonly answers: number
  readonly perSecond: number
  readonly p99Ms: number
}

export class GrpcLoader {
  readonly #sessions: readonly ClientHttp2Session[]
  #next = 0

  constructor(port: number) {
    this.#sessions = Array.from({ length: SESSIONS }, () => connect(`http://127.0.0.1:${port}`))
  }

  /** So many calls are in flight, for so long. @throws Error if one fails */
  atFullSpeed(durationMs: number): Promise<Called> {
    return this.#until((_, elapsedMs) => elapsedMs >= durationMs)
  }

  async warmUp(calls: number): Promise<void> {
    await this.#until((answers) => answers >= calls)
  }

  async #until(isOver: (answers: number, elapsedMs: number) => boolean): Promise<Called> {
    const latencyUs = createHistogram()
    const startMs = performance.now()
    let answers = 0
    const calls = Array.from({ length: IN_FLIGHT }, async () => {
      do {
        const sinceMs = performance.now()
        await this.#call()
        latencyUs.record(Math.max(1, Math.round(1_000 * (performance.now() - sinceMs))))
        answers++
      } while (!isOver(answers, performance.now() - startMs))
    })
    await Promise.all(calls)
    const perSecond = (1_000 * answers) / (performance.now() - startMs)
    return { answers, perSecond, p99Ms: latencyUs.percentile(99) / 1_000 }
  }

  #call(): Promise<void> {
    this.#next++
    const stream = this.#sessions[this.#next % SESSIONS]!.request(HEADERS)
    return new Promise((resolve, reject) => {
      let status: unknown
      stream.on('trailers', (trailers) => {
        status = trailers['grpc-status']
      })
      stream.on('error', reject)
      stream.on('close', () => (status === '0' ? resolve() : reject(new Error(`gRPC status ${status}`))))
      stream.resume()
      stream.end(FRAMES[this.#next % KEYS])
    })
  }

  close(): void {
    for (const session of this.#sessions) session.destroy()
  }
}
