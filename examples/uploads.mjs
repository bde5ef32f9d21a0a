// Uploads charged by their bytes: 10 MB a minute for each client. The declared length is reserved before the
// body is read; what was not sent is given back. A body without a length is reserved as the largest allowed,
// 1 MB.
//
//   node examples/uploads.mjs
//   head -c 900000 /dev/zero > /tmp/file
//   for i in $(seq 12); do curl -si http://127.0.0.1:3000/ --data-binary @/tmp/file | head -1; done
import { createServer } from 'node:http'
import { createLimiter } from 'millrace'
import { ipKey } from 'millrace/http'

const MOST_BYTES = 1_000_000
const bytes = createLimiter({ name: 'bytes', limit: '10MB', unit: '1KB', window: '1m' })
const address = ipKey()

const server = createServer((request, response) => {
  const length = Number(request.headers['content-length'] ?? MOST_BYTES)
  if (length > MOST_BYTES) return response.writeHead(413).end('at most 1 MB\n')
  if (request.socket.remoteAddress === undefined) return // the client has gone: it has no address
  const reservation = bytes.reserve(address(request), length)
  const { decision } = reservation
  if (!decision.allowed) {
    response.setHeader('Retry-After', decision.retryAfterSeconds)
    return response.writeHead(429, { Connection: 'close' }).end('too many bytes\n')
  }
  let received = 0
  request.on('data', (chunk) => {
    received += chunk.length
    if (received > MOST_BYTES) request.destroy() // it had declared no length
  })
  request.once('close', () => reservation.commit(received)) // also if the client has gone in the middle
  request.once('end', () => response.end(`${received} bytes\n`))
})

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close(() => bytes.close()))
