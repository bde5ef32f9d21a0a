// Bad, huge, slow and broken requests: each is refused, the engine goes on, and its memory is bounded.
// run: own, also-full
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import * as fc from 'fast-check'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sized } from '../size.js'
import { engine } from './engine.js'

const own = await engine({
  limit: '1000/1m',
  maxKeys: 10_000,
  maxBody: 65_536,
  maxBatch: 100,
  maxHeaders: 4_096,
  maxConnections: 50,
  requestTimeout: 500,
})
const { port } = new URL(own.url)
test.after(() => own.close())

const isUp = async () => assert.is((await own.get('/healthz')).status, 200)

/** Sends bytes, and resolves with all that came back until the engine has closed the connection. */
async function raw(text: string, { end = true } = {}): Promise<string> {
  const socket = connect(Number(port), '127.0.0.1')
  let answer = ''
  socket.setEncoding('latin1').on('data', (part: string) => {
    answer += part
  })
  socket.on('error', () => {})
  socket.write(text, 'latin1')
  if (end) socket.end()
  await once(socket, 'close')
  return answer
}

/** Sends bytes, and goes away before there is an answer. */
async function leave(text: string): Promise<void> {
  const socket = connect(Number(port), '127.0.0.1')
  socket.on('error', () => {})
  socket.write(text, 'latin1', () => socket.destroy())
  await once(socket, 'close')
}

const head = (length: number | string, path = '/v1/check') =>
  `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n`

test('bounds of the body, the batch, the headers and the key', async () => {
  assert.is((await own.post('/v1/check', `{"key":"${'a'.repeat(70_000)}"}`)).status, 413)
  const checks = Array.from({ length: 101 }, (_, i) => ({ key: String(i) }))
  const many = await own.post('/v1/check', { checks })
  assert.equal([many.status, many.body.field], [400, 'checks'])
  assert.match(
    await raw(`GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ${'a'.repeat(5_000)}\r\n\r\n`),
    /^HTTP\/1.1 431/,
  )
  for (const key of ['', 5, null, ['a'], { a: 1 }]) {
    const { status, body } = await own.post('/v1/check', { key })
    assert.equal([status, body.code, body.field], [400, 'ERR_MILLRACE_INVALID_KEY', 'key'])
  }
})

test('bad JSON, deep nesting, huge numbers and poisoned prototypes are 400', async () => {
  const deep = '['.repeat(30_000)
  const bodies = [
    ...['', '{', 'null', '[]', '"a"', '1', 'true', '\u0000', '{"key":"a"}}', '{"key":}', "{'key':'a'}"],
    ...[deep, deep + ']'.repeat(30_000), `{"key":${deep}`, `{"a":`.repeat(10_000)],
    ...['1e999', '-1', '1.5', '1e400', '9'.repeat(400), '"1"', 'null', '{}'].map(
      (cost) => `{"key":"a","cost":${cost}}`,
    ),
    ...[
      '{"key":"a","__proto__":{"cost":0}}',
      '{"key":"a","constructor":{"prototype":{}}}',
      '{"__proto__":null,"key":"a"}',
    ],
    ...[
      '{"key":"a","limiter":"__proto__"}',
      '{"key":"a","limiter":"constructor"}',
      '{"key":"a","limit":{"__proto__":1}}',
    ],
    '{"checks":[]}',
    '{"checks":[{"key":"a","checks":[]}]}',
    '{"checks":[{"key":"a"}],"key":"a"}',
  ]
  for (const body of bodies) {
    const { status } = await own.post('/v1/check', body)
    assert.is(status, 400, body.slice(0, 60))
  }
  await isUp()
})

test('any body of JSON is answered, and by no 500', async () => {
  const paths = ['check', 'peek', 'reserve', 'commit', 'refund', 'penalize', 'usage', 'stats']
  const field = fc.constantFrom(
    'key',
    'cost',
    'limiter',
    'limit',
    'token',
    'checks',
    'reservation',
    'lastMs',
    'rule',
  )
  const value = fc.oneof(fc.jsonValue(), fc.string(), fc.double(), fc.nat(), fc.constant('default'))
  const body = fc.oneof(fc.jsonValue(), fc.dictionary(field, value))
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...paths), body, async (path, asked) => {
      const { status } = await own.post(`/v1/${path}`, JSON.stringify(asked))
      return status < 500
    }),
    { numRuns: sized({ quick: 300, full: 5_000 }) },
  )
})

test('requests that are no HTTP, or pipelined, or cut short, end only their connection', async () => {
  const body = '{"key":"pipe"}'
  const one = `${head(body.length)}\r\n${body}`
  assert.is((await raw(one.repeat(20))).match(/HTTP\/1.1 200/g)?.length, 20)
  const wrong = [
    ...[
      '\r\n\r\n\r\n',
      'GET',
      'NONSENSE / HTTP/1.1\r\n\r\n',
      'GET / HTTP/9.9\r\n\r\n',
      '\x16\x03\x01\x02\x00\x01',
    ],
    ...[head('abc'), head(-1), head(10), `${head(100)}\r\n{`, `${head(5)}content-length: 7\r\n\r\n{"key"`],
    `${head(5)}transfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    'POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nfffffffff\r\n',
  ]
  const answers = await Promise.all(wrong.map((text) => raw(text)))
  for (const [i, answer] of answers.entries())
    assert.not.match(answer, /HTTP\/1.1 (200|500)/, JSON.stringify(wrong[i]))
  await isUp()
})

test('a path that is none is a problem document', async () => {
  const { status, body } = await own.get('/v1/%zz')
  assert.equal([status, body.code], [400, 'ERR_MILLRACE_INVALID_OPTION'])
})

test('a client that sends slowly is cut off, before, in and after its headers', async () => {
  const slow = ['', 'POST /v1/check HTTP/1.1\r\nhost:', `${head(100)}\r\n{"key":`]
  for (const answer of await Promise.all(slow.map((text) => raw(text, { end: false }))))
    assert.match(answer, /^HTTP\/1.1 408/)
  await isUp()
})

test('more connections than the bound are closed, and the others go on', async () => {
  const sockets: Socket[] = []
  let closed = 0
  const enough = new Promise<void>((resolve) => {
    for (let i = 0; i < 150; i++) {
      const socket = connect(Number(port), '127.0.0.1')
      socket.on('error', () => {})
      socket.on('close', () => ++closed >= 100 && resolve())
      sockets.push(socket)
    }
  })
  await enough
  for (const socket of sockets) socket.destroy()
  await isUp()
})

test('memory is bounded while clients send large bodies and go away', async () => {
  const half = `${head(60_000)}\r\n{"key":"${'a'.repeat(50_000)}`
  const round = async () => {
    await Promise.all(Array.from({ length: 40 }, () => leave(half)))
    const keys = Array.from({ length: 100 }, (_, i) => ({ key: `${Math.random()} ${i}` }))
    await Promise.all(Array.from({ length: 20 }, () => own.post('/v1/check', { checks: keys })))
  }
  await round()
  const before = process.memoryUsage().rss
  for (let i = 0; i < sized({ quick: 10, full: 100 }); i++) await round()
  const grown = process.memoryUsage().rss - before
  assert.ok(grown < 100 * 2 ** 20, `${Math.round(grown / 2 ** 20)} MiB`)
  await isUp()
})

test.run()
