/**
 * A server that is measured: an engine, or a bare Fastify route that parses and answers the same JSON. Prints its port;
 * ends at SIGTERM, and says its processor time at each message of the process that has started it.
 */
import type { AddressInfo } from 'node:net'
import { serve } from 'millrace-service'

export type ServerName = 'engine' | 'bare route'

/** What a server tells of itself. */
export interface ServerState {
  /** Since its start, in microseconds. */
  readonly cpuUs: number
  /** Its resident memory, in bytes. */
  readonly rss: number
}

const LIMIT = 1_000_000
const ANSWER = { allowed: true, limit: LIMIT, remaining: LIMIT - 1, retryAfterMs: 0, resetMs: 60_123 }

async function bareRoute(): Promise<number> {
  const { default: Fastify } = await import('fastify')
  const app = Fastify()
  app.post<{ Body: { key: string } }>('/v1/check', ({ body }) => {
    if (body.key.length === 0) throw new Error('a request without a key')
    return { ...ANSWER, rule: 'default', retryAfterSeconds: 0 }
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  return (app.server.address() as AddressInfo).port
}

async function engine(maxKeys: number): Promise<number> {
  const { url } = await serve({ limit: `${LIMIT}/1m`, port: 0, logLevel: 'error', maxKeys })
  return Number(new URL(url).port)
}

const [name, maxKeys = '100000'] = process.argv.slice(2)
process.on('SIGTERM', () => process.exit(0))
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send!({ cpuUs: user + system, rss: process.memoryUsage.rss() } satisfies ServerState)
})
console.log(await (name === 'engine' ? engine(Number(maxKeys)) : bareRoute()))
