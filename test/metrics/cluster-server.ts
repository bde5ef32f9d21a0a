// A program: a primary whose four workers serve HTTP on one port, by a limiter in a shared file, and the metrics of all.
import cluster from 'node:cluster'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLimiter } from 'millrace'
import { rateLimit } from 'millrace/http'
import { register } from 'millrace/metrics'
import { AggregatorRegistry } from 'prom-client'

const WORKERS = 4
const [file = 'no file'] = process.argv.slice(2)
const registry = new AggregatorRegistry()

async function primary(): Promise<void> {
  const workers = Array.from({ length: WORKERS }, () => cluster.fork())
  const ports = await Promise.all(workers.map(async (worker) => (await once(worker, 'message'))[0] as number))
  const metrics = createServer((_, response) => {
    registry.clusterMetrics().then(
      (text) => response.end(text),
      (error: Error) => response.writeHead(500).end(error.message),
    )
  })
  metrics.listen(0, '127.0.0.1')
  await once(metrics, 'listening')
  console.log(JSON.stringify({ ports, metrics: (metrics.address() as AddressInfo).port }))
  process.once('disconnect', () => process.exit())
}

async function worker(): Promise<void> {
  const limiter = createLimiter({ limit: 150, window: '1h', shared: { file } })
  const site = rateLimit({ limiter, key: ({ headers }) => String(headers['x-user']) })
  register({ site })
  const server = createServer((request, response) => site(request, response, () => response.end('ok')))
  server.listen({ port: 0, host: '127.0.0.1', exclusive: true })
  await once(server, 'listening')
  process.send!((server.address() as AddressInfo).port)
}

await (cluster.isPrimary ? primary() : worker())
