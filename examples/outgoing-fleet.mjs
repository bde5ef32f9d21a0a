// A fleet of worker processes that share one limit for their calls to an API: 20 a second for all of them. They
// count in one file, which each of them maps. The API has that limit itself, and its log says whether it held.
//
// Run it in a clone, on Linux or macOS. It needs the C++ addon.
//
//   npm run build:native
//   node examples/outgoing-fleet.mjs
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLimiter } from 'millrace'
import { limitedFetch } from 'millrace/fetch'
import { rateLimit } from 'millrace/http'

const WORKERS = 4
const CALLS = 20 // of each worker
const LIMIT = 20
const WINDOW_MS = 1_000

if (process.send === undefined) await startFleet()
else await work()

async function startFleet() {
  const arrivals = []
  let refused = 0
  const limited = rateLimit({ limit: LIMIT, window: WINDOW_MS, standard: false, onLimited: () => refused++ })
  const api = createServer((request, response) => {
    arrivals.push(performance.now())
    limited(request, response, () => response.end('done\n'))
  })
  api.listen(0, '127.0.0.1')
  await once(api, 'listening')

  // A path of your own keeps the counts across restarts: './api-calls.arena'.
  const folder = mkdtempSync(join(tmpdir(), 'millrace-fleet-'))
  const env = {
    ...process.env,
    CALLS_FILE: join(folder, 'api-calls.arena'),
    API: `http://127.0.0.1:${api.address().port}`,
  }
  const workers = Array.from({ length: WORKERS }, () => fork(process.argv[1], { env }))
  const reports = await Promise.all(workers.map((worker) => once(worker, 'message')))
  for (const [{ pid, count }] of reports) console.log(`process ${pid} made ${count} calls`)
  await Promise.all(workers.map((worker) => worker.exitCode ?? once(worker, 'exit')))

  const most = Math.max(
    ...arrivals.map((start) => arrivals.filter((at) => at >= start && at < start + WINDOW_MS).length),
  )
  console.log(`the API saw ${arrivals.length} calls, at most ${most} in any second, and refused ${refused}`)
  process.exitCode = most <= LIMIT && refused === 0 ? 0 : 1

  api.close()
  api.closeAllConnections()
  rmSync(folder, { recursive: true })
}

async function work() {
  // A little longer than the API's window, which counts in buckets, and a call for up to a sixtieth longer.
  const window = 1.02 * WINDOW_MS
  const limiter = await openLimiter({ limit: LIMIT, window, shared: { file: process.env.CALLS_FILE } })
  const call = limitedFetch(fetch, { limiter, key: 'api' })
  const responses = await Promise.all(Array.from({ length: CALLS }, () => call(process.env.API)))
  const count = responses.filter(({ ok }) => ok).length
  await Promise.all(responses.map((response) => response.text()))
  await limiter.close()
  process.send({ pid: process.pid, count }, () => process.disconnect())
}
