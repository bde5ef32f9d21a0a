// Engines for tests of the client: real ones with limiters on a test's clock, and servers that answer wrongly.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLimiter, type Limiter, type LimiterOptions, manualClock } from 'millrace'
import { type ClientLimiter, type ClientOptions, createClient } from 'millrace/client'
import { serve } from 'millrace-service'

/** An engine with one limiter, and what asks it. */
export interface Running {
  readonly url: string
  readonly limiter: Limiter
  readonly clock: ReturnType<typeof manualClock>
  close(): Promise<void>
}

export async function engine(
  options: Partial<LimiterOptions> = {},
  port = 0,
  name = 'default',
): Promise<Running> {
  const clock = manualClock(1_000)
  const own = { limit: 5, window: '1m', clock, ...options } as LimiterOptions
  const limiter = createLimiter(own) as Limiter
  const { url, close } = await serve({ port, ...QUIET }, { limiters: new Map([[name, limiter]]) })
  return {
    url,
    limiter,
    clock,
    async close() {
      await close()
      limiter.close()
    },
  }
}

/** May do everything. */
export const TOKEN = 'a-token-for-the-tests-of-the-client'

/** The options of an engine of the tests. */
export const QUIET = {
  tokens: [{ token: TOKEN, scopes: ['decide', 'read', 'change'], name: 'tests' }],
  logLevel: 'silent',
} as const

/** A client with enough time on a busy machine, unless a test needs a deadline to pass. */
export const clientOf = (options: ClientOptions): ClientLimiter =>
  createClient({ deadline: '1m', token: TOKEN, ...options })

/** A request that a server of a test has got. */
export interface Got {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  // biome-ignore lint/suspicious/noExplicitAny: the tests say what it is
  readonly body: any
}

/** A server that answers as a test says, and the requests that it has got. */
export interface Odd {
  readonly url: string
  readonly got: readonly Got[]
  close(): Promise<void>
}

export async function oddServer(answer: (got: Got, response: ServerResponse) => void): Promise<Odd> {
  const got: Got[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const one = { path: request.url!, headers: request.headers, body: text && JSON.parse(text) }
    got.push(one)
    answer(one, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    got,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

export function answerJson(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** An answer to `GET /v1/limiters`, with one limiter of 5 a minute. */
export const limitersOf = (idempotency: boolean) => ({
  limiters: [
    {
      name: 'default',
      rules: [{ name: 'default', limit: 5, windowMs: 60_000, granularityMs: 1_000, edge: 'strict' }],
    },
  ],
  idempotency,
})

/** An admission, as a service writes it. */
export const ADMITTED = {
  allowed: true,
  limit: 5,
  remaining: 4,
  retryAfterMs: 0,
  retryAfterSeconds: 0,
  resetMs: 60_000,
  rule: 'default',
}
