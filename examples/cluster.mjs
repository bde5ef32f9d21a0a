// One limit for the processes of `cluster`. Four workers behind one port count in one file, which each of
// them maps. The primary process sends three times as many requests as the limit allows, and prints how many
// were served: exactly the limit.
//
// Run it in a clone, on Linux or macOS. It needs the C++ addon, and the load generator autocannon, which `npm
// ci` installs.
//
//   npm run build:native
//   node examples/cluster.mjs
import cluster from 'node:cluster'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import autocannon from 'autocannon'
import { openLimiter } from 'millrace'

const WORKERS = 4
const LIMIT = 1_000

if (cluster.isPrimary) await startWorkers()
else await serve()

async function startWorkers() {
  // A path of your own keeps the counts across restarts: './api-limits.arena'.
  const folder = mkdtempSync(join(tmpdir(), 'millrace-cluster-'))
  const workers = Array.from({ length: WORKERS }, () =>
    cluster.fork({ LIMITS: join(folder, 'api-limits.arena') }),
  )
  const [[{ port }]] = await Promise.all(
    workers.map((worker) => once(worker, 'listening').then(([at]) => [at])),
  )
  const url = `http://127.0.0.1:${port}`
  console.log(`${WORKERS} workers listen on ${url}, one limit of ${LIMIT.toLocaleString('en')} an hour`)

  const found = await autocannon({ url, connections: 40, amount: 3 * LIMIT })
  const { 200: served, 429: refused } = Object.fromEntries(
    Object.entries(found.statusCodeStats).map(([status, { count }]) => [status, count]),
  )
  const answered = Promise.all(workers.map((worker) => once(worker, 'message')))
  for (const worker of workers) worker.send('how many?')
  for (const [{ pid, count }] of await answered) console.log(`process ${pid} answered ${count} requests`)
  const verdict = served === LIMIT ? 'exactly the limit' : `not the limit, ${LIMIT}`
  console.log(`${served} served, ${refused} refused: ${verdict}`)
  process.exitCode = served === LIMIT ? 0 : 1

  for (const worker of workers) worker.disconnect()
  await Promise.all(workers.map((worker) => once(worker, 'exit')))
  rmSync(folder, { recursive: true })
}

async function serve() {
  // All workers open the file as they start. openLimiter waits its turn without blocking the event loop.
  const limiter = await openLimiter({ limit: LIMIT, window: '1h', shared: { file: process.env.LIMITS } })
  let count = 0
  const server = createServer((request, response) => {
    count++
    const decision = limiter.check(request.socket.remoteAddress ?? 'gone')
    if (decision.allowed) return response.end(`hello from process ${process.pid}\n`)
    response.setHeader('Retry-After', decision.retryAfterSeconds)
    response.writeHead(429).end('too many requests\n')
  })
  server.listen(Number(process.env.PORT ?? 0), '127.0.0.1')
  process.on('message', () => process.send({ pid: process.pid, count }))
  process.on('disconnect', () => limiter.close())
}
