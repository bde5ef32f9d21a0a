/**
 * A server that is measured: an engine, or a bare Fastify route that parses and answers the same JSON; an engine for
 * Envoy, or a bare gRPC server that reads and answers the same messages. Prints its port;
 * ends at SIGTERM, and says its processor time at each message of the process that has started it.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serve } from 'millrace-service'

export type ServerName = 'engine' | 'bare route' | 'envoy' | 'gRPC echo'

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

async function envoy(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const path = join(folder, 'limits.yaml')
  const limit = `{ unit: minute, requests_per_unit: ${LIMIT} }`
  writeFileSync(path, `domain: test\ndescriptors: [{ key: user, rate_limit: ${limit} }]`)
  const { grpcAddress } = await serve({ envoyConfig: [path], grpcPort: 0, port: 0, logLevel: 'error' })
  process.on('exit', () => rmSync(folder, { recursive: true }))
  return Number(grpcAddress!.split(':')[1])
}

async function grpcEcho(): Promise<number> {
  const { loadPackageDefinition, Server, ServerCredentials } = await import('@grpc/grpc-js')
  const { loadSync } = await import('@grpc/proto-loader')
  const path = fileURLToPath(new URL('../../../service/proto/ratelimit.proto', import.meta.url))
  // biome-ignore lint/suspicious/noExplicitAny: made of the file of the contract
  const definition = loadPackageDefinition(loadSync(path, { keepCase: true })) as any
  const reset = { seconds: 60, nanos: 500_000_000 }
  const limit = { requests_per_unit: LIMIT, unit: 2 }
  const status = { code: 1, current_limit: limit, limit_remaining: LIMIT - 1, duration_until_reset: reset }
  const server = new Server()
  server.addService(definition.envoy.service.ratelimit.v3.RateLimitService.service, {
    // biome-ignore lint/suspicious/noExplicitAny: the same
    ShouldRateLimit({ request }: any, answer: (error: null, response: object) => void) {
      if (request.descriptors.length === 0) throw new Error('a request without a descriptor')
      answer(null, { overall_code: 1, statuses: [status] })
    },
  })
  return new Promise((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(port) : reject(error),
    ),
  )
}

const [name, maxKeys = '100000'] = process.argv.slice(2)
process.on('SIGTERM', () => process.exit(0))
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send!({ cpuUs: user + system, rss: process.memoryUsage.rss() } satisfies ServerState)
})
const SERVERS: Record<ServerName, () => Promise<number>> = {
  engine: () => engine(Number(maxKeys)),
  'bare route': bareRoute,
  envoy,
  'gRPC echo': grpcEcho,
}
console.log(await SERVERS[name as ServerName]())
