// run: full
// The recipes for ws and Socket.IO, with the packages and clients of theirs.
import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect as connectTcp, type Server as NetServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { rateLimit } from 'millrace/http'
import { Server } from 'socket.io'
import { io as connect, type Socket } from 'socket.io-client'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { WebSocket } from 'ws'
import { runRecipe } from './recipe.js'

const SESSION = { 'session.js': "export const userOf = ({ headers }) => headers['x-user']\n" }
const [MOST_CONNECTIONS, MOST_MESSAGES] = [30, 60]

const portOf = (server: NetServer) => (server.address() as AddressInfo).port
const ws = await runRecipe('ws', ['server'], SESSION)
const url = `ws://127.0.0.1:${portOf(ws.server)}`
const { io } = await runRecipe('Socket\\.IO', ['io'], SESSION)
const ioServer: NetServer = io.httpServer
const ioUrl = `http://127.0.0.1:${portOf(ioServer)}`
test.after(async () => {
  for (const socket of ws.server.clients) socket.terminate()
  ws.server.close()
  ioServer.close()
  await io.close() // and of the last server that it was attached to
})

/** A socket of a user; the status of the refusal if there is none. */
async function open(user: string): Promise<WebSocket | number> {
  const socket = new WebSocket(url, { headers: { 'x-user': user } })
  return new Promise((resolve, reject) => {
    socket.on('open', () => resolve(socket))
    socket.on('unexpected-response', (request, response) => {
      request.destroy()
      resolve(response.statusCode!)
    })
    socket.on('error', reject)
  })
}

/** Sends as many messages; returns the answers, and the code with which the server has closed the socket, if it has. */
async function talk(socket: WebSocket, count: number): Promise<{ answers: string[]; code?: number }> {
  const answers: string[] = []
  return new Promise((resolve) => {
    socket.on('message', (data) => {
      answers.push(String(data))
      if (answers.length === count) resolve({ answers })
    })
    socket.on('close', (code) => resolve({ answers, code }))
    for (let i = 0; i < count; i++) socket.send(`${i}`)
  })
}

let opened = 0
async function opening(user: string): Promise<WebSocket> {
  opened++
  const socket = await open(user)
  if (typeof socket === 'number') throw new Error(`refused with ${socket}`)
  return socket
}

test('ws: a user has one limit for messages on all sockets and over reconnects, others have their own', async () => {
  const [first, second] = [await opening('alice'), await opening('alice')]
  assert.is((await talk(first, MOST_MESSAGES - 8)).answers.length, MOST_MESSAGES - 8)
  const rest = await talk(second, 9)
  assert.equal(rest, {
    answers: ['0', '1', '2', '3', '4', '5', '6', '7'].map((n) => `you said ${n}`),
    code: 1008,
  })
  assert.equal(await talk(await opening('alice'), 1), { answers: [], code: 1008 })
  const bob = await opening('bob')
  assert.equal(await talk(bob, 1), { answers: ['you said 0'] })
  for (const socket of [first, bob]) socket.terminate()
})

test('ws: an invalid frame of a client ends its socket only', async () => {
  const { error } = console
  const errors: unknown[] = []
  console.error = (text: unknown) => errors.push(text)
  const bad = await opening('mallory')
  const closed = once(bad, 'close')
  // biome-ignore lint/suspicious/noExplicitAny: the client has no method for invalid frames
  ;(bad as any)._socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]))
  await closed
  console.error = error
  assert.is(errors.length, 1)
  assert.equal(await talk(await opening('carol'), 1), { answers: ['you said 0'] })
})

/** As many clients that ask for a WebSocket, and reset their connections at once. */
async function resetting(port: number, path: string, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const client = connectTcp(port, '127.0.0.1')
    await once(client, 'connect')
    client.write(
      `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n',
    )
    client.resetAndDestroy()
    await once(client, 'close')
  }
}

/** Counts the sockets of a server from which no address can be read any more, when their request comes. */
function withoutAddress(server: NodeJS.EventEmitter): () => number {
  let count = 0
  server.prependListener('upgrade', ({ socket }) => {
    if (socket.remoteAddress === undefined) count++
  })
  return () => count
}

test('ws: connections beyond the limit of an address are refused with 429', async () => {
  while (opened < MOST_CONNECTIONS) (await opening('dave')).terminate()
  assert.equal([await open('dave'), await open('erin')], [429, 429])
})

test('ws: a client that resets its connection at once does not end the process', async () => {
  const gone = withoutAddress(ws.server._server)
  await resetting(portOf(ws.server), '/', 5)
  while (gone() === 0) await resetting(portOf(ws.server), '/', 1)
  assert.is(await open('frank'), 429)
})

async function connected(user: string, transport = 'websocket'): Promise<Socket> {
  const socket = connect(ioUrl, {
    extraHeaders: { 'x-user': user },
    transports: [transport],
    reconnection: false,
    forceNew: true,
  })
  await new Promise<void>((resolve, reject) => {
    socket.on('connect', resolve)
    socket.on('connect_error', reject)
  })
  return socket
}

/** Sends as many messages. Returns how many were answered and how many refused. */
async function say(socket: Socket, count: number): Promise<[answered: number, refused: number]> {
  let [answered, refused] = [0, 0]
  await new Promise<void>((resolve) => {
    const settle = () => answered + refused === count && resolve()
    socket.on('refused', (message) => {
      assert.is(message, 'too many')
      refused++
      settle()
    })
    for (let i = 0; i < count; i++)
      socket.emit('say', `${i}`, (answer: string) => {
        assert.is(answer, `you said ${i}`)
        answered++
        settle()
      })
  })
  socket.off('refused')
  return [answered, refused]
}

test('Socket.IO: a user has one limit for messages over reconnects and transports, and stays connected', async () => {
  const first = await connected('alice')
  assert.equal(await say(first, MOST_MESSAGES + 5), [MOST_MESSAGES, 5])
  assert.equal(await say(first, 1), [0, 1])
  assert.ok(first.connected)
  first.disconnect()
  const second = await connected('alice', 'polling')
  assert.equal(await say(second, 1), [0, 1])
  const bob = await connected('bob', 'polling')
  assert.equal(await say(bob, 1), [1, 0])
  for (const socket of [second, bob]) socket.disconnect()
})

test('Socket.IO: connections beyond the limit of an address are refused', async () => {
  for (let n = 3; n < MOST_CONNECTIONS; n++) (await connected('carol')).disconnect()
  const refused = await connected('carol').then(
    () => undefined,
    ({ message }) => message,
  )
  assert.is(refused, 'too many')
})

test('Socket.IO: a client without an address is refused, and does not end the process', async () => {
  const socketPath = join(tmpdir(), `millrace-io-${process.pid}`)
  const server = createServer()
  io.attach(server)
  await new Promise<void>((resolve) => server.listen(socketPath, resolve))
  const send = async (method: string, query: string, body = '') => {
    const path = `/socket.io/?EIO=4&transport=polling${query}`
    const sent = request({ socketPath, method, path, agent: false }).end(body)
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    return text(response)
  }
  const { sid } = JSON.parse((await send('GET', '')).slice(1))
  await send('POST', `&sid=${sid}`, '40')
  assert.is(await send('GET', `&sid=${sid}`), '44{"message":"too many"}')
})

test('Socket.IO: rateLimit of millrace/http limits its requests of HTTP', async () => {
  const limited = new Server(0)
  limited.engine.use(rateLimit({ limit: 3, window: '1m' }))
  const port = portOf(limited.httpServer as NetServer)
  const statuses: number[] = []
  for (let i = 0; i < 5; i++) {
    const response = await fetch(`http://127.0.0.1:${port}/socket.io/?EIO=4&transport=polling`)
    statuses.push(response.status)
  }
  assert.equal(statuses, [200, 200, 200, 429, 429])
  await limited.close()
})

test.run()
