// A server whose certificate this process does not trust, or that speaks no TLS: `ready` rejects, and says why.
import { once } from 'node:events'
import { connect } from 'node:net'
import { createServer } from 'node:tls'
import { Redis } from 'ioredis'
import type { MillraceError } from 'millrace'
import { createRedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import { createClient } from 'redis'
import * as assert from 'uvu/assert'
import { CERTIFICATE, KEY } from './certificate.js'
import { LIBRARIES, type Library } from './clients.js'
import { freePort, HOST } from './ports.js'
import type { Server } from './process.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'

const clientOf = (library: Library, port: number, ca: string | undefined): RedisLimiterOptions['client'] =>
  library === 'ioredis'
    ? new Redis(port, HOST, { lazyConnect: true, tls: { ca } })
    : createClient({ url: `rediss://${HOST}:${port}`, socket: { tls: true, ...(ca && { ca }) } })

let redis: Server
test.before(async () => {
  redis = await startRedis()
})
test.after(async () => {
  await redis?.stop()
})

/** A Redis behind TLS. */
async function startTls(): Promise<{ port: number; close(): void }> {
  const server = createServer({ key: KEY, cert: CERTIFICATE }, (socket) => {
    const inner = connect(redis.port, HOST)
    for (const each of [socket, inner]) each.on('error', () => {}) // the other one closes
    socket.on('close', () => inner.destroy())
    inner.on('close', () => socket.destroy())
    socket.pipe(inner).pipe(socket)
  })
  server.on('tlsClientError', () => {}) // clients that don't trust it
  const port = await freePort()
  server.listen(port, HOST)
  await once(server, 'listening')
  return { port, close: () => server.close() }
}

async function ready(
  library: Library,
  port: number,
  ca: string | undefined,
): Promise<MillraceError | 'ready'> {
  const client = clientOf(library, port, ca)
  const limiter = createRedisLimiter({ client, prefix: 'test', limit: 4, window: '1h' })
  try {
    return await limiter.ready().then(
      () => 'ready' as const,
      (error) => error,
    )
  } finally {
    await limiter.close()
  }
}

for (const library of LIBRARIES) {
  test(`${library}: a certificate that is not trusted`, async () => {
    const tls = await startTls()
    try {
      const error = (await ready(library, tls.port, undefined)) as MillraceError
      assert.equal([error.code, error.value], ['ERR_MILLRACE_OUTAGE', 'DEPTH_ZERO_SELF_SIGNED_CERT'])
      assert.match(
        error.message,
        /certificates that each other trusts \(the reason: self-signed certificate\)/,
      )
      assert.is(await ready(library, tls.port, CERTIFICATE), 'ready')
    } finally {
      tls.close()
    }
  })
}

test.run()
