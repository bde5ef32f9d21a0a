// Decides on this thread at /, and on another at /thread, with one limit. Bundled by bundle.test.ts.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { Worker } from 'node:worker_threads'
import { createLimiter } from 'millrace'

const limiter = createLimiter({ limit: 10, window: '1m' })
const worker = new Worker(new URL('./worker.mjs', import.meta.url), { workerData: limiter.share() })
const isAllowed = {
  '/': async () => limiter.check('somebody').allowed,
  '/thread': async () => {
    worker.postMessage('somebody')
    const [allowed] = await once(worker, 'message')
    return allowed
  },
}

const server = createServer(async (request, response) => {
  response.writeHead((await isAllowed[request.url]()) ? 200 : 429).end()
})
server.listen(Number(process.env.PORT), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
process.once('SIGTERM', () => server.close(() => worker.terminate()))
