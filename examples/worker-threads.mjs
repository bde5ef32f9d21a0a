// One limit for worker threads: four threads with an HTTP server each, and 10 requests in any minute for a
// client, over all of them. Threads can't hand sockets to each other, and before Node 22.12 (`reusePort`)
// they can't listen on one port. So each has a port of its own, as behind a load balancer. With PORT=3000:
// 3000 to 3003.
//
//   node examples/worker-threads.mjs
//   for i in 1 2 3; do for port in 3000 3001 3002 3003; do curl -s http://127.0.0.1:$port/; done; done
import { once } from 'node:events'
import { createServer } from 'node:http'
import { isMainThread, parentPort, threadId, Worker, workerData } from 'node:worker_threads'
import { attachLimiter, createLimiter } from 'millrace'

const THREADS = 4

if (isMainThread) await startThreads()
else serve(attachLimiter(workerData.shared), workerData.port)

async function startThreads() {
  const limiter = createLimiter({ limit: 10, window: '1m' })
  const first = Number(process.env.PORT ?? 3000)
  const workers = Array.from({ length: THREADS }, (_, i) => {
    const port = first === 0 ? 0 : first + i
    // Each thread makes a limiter on the same memory. A decision sends no message between threads.
    return new Worker(new URL(import.meta.url), { workerData: { shared: limiter.share(), port } })
  })
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => {
      for (const worker of workers) worker.postMessage('close')
      limiter.close()
    })
  }
  const ports = await Promise.all(workers.map((worker) => once(worker, 'message')))
  for (const [port] of ports) console.log(`listening on http://127.0.0.1:${port}`)
}

function serve(limiter, port) {
  const server = createServer((request, response) => {
    const decision = limiter.check(request.socket.remoteAddress ?? 'gone')
    if (decision.allowed) return response.end(`hello from thread ${threadId}, ${decision.remaining} left\n`)
    response.setHeader('Retry-After', decision.retryAfterSeconds)
    response.writeHead(429).end('too many requests\n')
  })
  server.listen(port, '127.0.0.1', () => parentPort.postMessage(server.address().port))
  parentPort.once('message', () => server.close(() => limiter.close()))
}
