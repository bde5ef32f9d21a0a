// run: also-full
// One client that sends many requests before it reads, with the option `delay`: what waits when it has gone, and what
// it is answered if it stays.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import Fastify from 'fastify'
import { rateLimit as limitFastify } from 'millrace/fastify'
import { rateLimit } from 'millrace/http'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { until } from '../limiter/support.js'
import type { AnyOptions, FrameworkDriver } from './driver.js'
import { http1Drivers } from './drivers.js'
import { nodeDriver } from './node-driver.js'
import { listen, shut } from './serve.js'

const BIG = 8_000_000
const HOUR_MS = 3_600_000
const MANY = 40_000
/** Makes requests longer, so that Node.js reads fewer at once. */
const PAD = `X-Pad: ${'x'.repeat(200)}\r\n`

/** How long a client may go on sending when all its responses have been sent. */
const LINGER_MS = 5_000

/** The timers of an hour that run, by what they call. */
const hours = new Map<unknown, () => void>()
/** The same of timers as long as a client may go on. */
const lingers = new Map<unknown, () => void>()
const held: ReadonlyMap<number, Map<unknown, () => void>> = new Map([
  [HOUR_MS, hours],
  [LINGER_MS, lingers],
])

/** Holds these timers, to be called by hand. */
async function withHours(use: () => Promise<void>): Promise<void> {
  const { setTimeout, clearTimeout } = globalThis
  const patched = (call: () => void, ms = 0, ...rest: []) => {
    const timer = setTimeout(held.has(ms) ? () => {} : call, ms, ...rest)
    held.get(ms)?.set(timer, call)
    return timer
  }
  globalThis.setTimeout = Object.assign(patched, setTimeout) as unknown as typeof setTimeout
  globalThis.clearTimeout = (timer) => {
    hours.delete(timer)
    lingers.delete(timer)
    clearTimeout(timer)
  }
  try {
    await use()
  } finally {
    Object.assign(globalThis, { setTimeout, clearTimeout })
    hours.clear()
    lingers.clear()
  }
}

/** Connects to a server of this process. Both ends. */
async function connected(url: string, options = {}): Promise<[client: Socket, server: Socket]> {
  let server: Socket | undefined
  const see = (message: unknown): void => {
    server = (message as { socket: Socket }).socket
  }
  subscribe('net.server.socket', see)
  const client = connect({ port: Number(new URL(url).port), host: '127.0.0.1', ...options })
  await once(client, 'connect')
  await until(() => server !== undefined, 'the connection')
  unsubscribe('net.server.socket', see)
  return [client, server!]
}

const request = (path: string, headers = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\n${PAD}${headers}\r\n`
const delay = { after: 0, ms: HOUR_MS, max: HOUR_MS }

/** A client's requests of which the first waits. What then comes makes Node.js stop reading. */
const FLOODS: readonly {
  readonly name: string
  readonly flood: string
  /** Whether all of it waits, so that Node.js goes on reading. */
  readonly isRead?: true
  readonly options: (driver: FrameworkDriver) => object
}[] = [
  {
    name: 'requests that all wait',
    flood: request('/').repeat(50),
    isRead: true,
    options: () => ({ limit: 10 }),
  },
  {
    name: 'requests beyond maxDelayed',
    flood: request('/').repeat(MANY),
    options: () => ({ limit: 10 }),
  },
  {
    name: 'requests of a route without a limit',
    flood: request('/') + request('/status/404').repeat(MANY),
    options: () => ({ limit: 10, routes: { '/status/404': false } }),
  },
  {
    name: 'requests that can never be admitted',
    flood: request('/') + request('/', 'x-cost: 11\r\n').repeat(MANY),
    options: (driver) => ({ limit: 10, cost: (of: unknown) => Number(driver.header(of, 'x-cost') ?? 1) }),
  },
]

/** Every way of closing a connection. */
const HANG_UPS: readonly ((client: Socket) => unknown)[] = [
  (client) => client.end(),
  (client) => client.destroy(),
  (client) => client.resetAndDestroy(),
]

async function flooded(
  driver: FrameworkDriver,
  { flood, isRead, options }: Omit<(typeof FLOODS)[number], 'name'>,
  use: (client: Socket, handled: () => number, server: Socket) => Promise<void>,
  clientOptions = {},
): Promise<void> {
  let handled = 0
  const counting = { limit: MANY, window: '1m', key: () => `${handled++}`, routes: { '/status/*': false } }
  const limiting = { window: '1m', key: () => 'all', delay, ...options(driver) }
  const served = await driver.serve(limiting as AnyOptions, counting as AnyOptions)
  const [client, server] = await connected(served.url, clientOptions)
  try {
    const paused = isRead ? undefined : once(server, 'pause')
    client.write(flood)
    await paused
    await until(() => hours.size >= (isRead ? 50 : 1), 'requests that wait')
    await use(client, () => handled, server)
  } finally {
    client.destroy()
    await served.close()
  }
}

/** Ends all waits, also those that begin then. */
function release(): void {
  while (hours.size > 0) {
    for (const [timer, call] of hours) {
      hours.delete(timer)
      call()
    }
  }
}

/** Collects what a client is sent. */
function received(client: Socket): () => string {
  const parts: Buffer[] = []
  client.on('data', (part) => parts.push(part))
  return () => Buffer.concat(parts).toString('latin1')
}

const statusesIn = (text: string): string[] => text.match(/(?<=HTTP\/1\.1 )\d+/g) ?? []

for (const driver of http1Drivers) {
  // A function of requests hears of its client by a signal, which node-server does not give to queued requests.
  if (driver.hasNoSocket !== undefined) continue
  for (const flood of FLOODS) {
    test(`${driver.name}: ${flood.name}: a client that hangs up leaves no timer and no handler`, () =>
      withHours(async () => {
        for (const hangUp of driver === nodeDriver ? HANG_UPS : HANG_UPS.slice(1, 2)) {
          await flooded(driver, flood, async (client, handled) => {
            hangUp(client)
            await until(() => hours.size === 0, 'the end of all timers')
            assert.is(handled(), 0)
          })
        }
      }))
    if (flood.isRead) continue
    test(`${driver.name}: ${flood.name}: a client that stays is answered what was read, and disconnected`, () =>
      withHours(() =>
        flooded(driver, flood, async (client) => {
          const text = received(client)
          release()
          await once(client, 'end')
          const statuses = statusesIn(text())
          assert.is(statuses[0], '200')
          assert.ok(statuses.length > 20 && statuses.length < MANY / 2, `${statuses.length} answers`)
        }),
      ))
  }
}

test('a request that begins to wait when Node.js has already stopped reading', () =>
  withHours(async () => {
    const flood = {
      flood: request('/hang') + request('/status/404').repeat(200) + request('/').repeat(MANY),
      options: () => ({ limit: 10, routes: { '/hang': false, '/status/404': false } }),
    }
    await flooded(nodeDriver, flood, async (client) => {
      client.destroy()
      await until(() => hours.size === 0, 'the end of all timers')
    })
  }))

/** A client that does not end its side when the server has ended its own. */
const staying = (use: (client: Socket, server: Socket) => Promise<void>) =>
  withHours(() =>
    flooded(
      nodeDriver,
      FLOODS.find(({ isRead }) => !isRead)!,
      async (client, _, server) => {
        client.on('error', () => {}) // the reset that it may get
        client.resume()
        release()
        await once(client, 'end')
        assert.is(lingers.size, 1)
        assert.not(server.destroyed)
        await use(client, server)
      },
      { allowHalfOpen: true },
    ),
  )

test('a client that goes on sending after its last answer is read for a time, and then disconnected', () =>
  staying(async (client, server) => {
    const { bytesRead } = server
    client.write(request('/').repeat(1_000))
    await until(() => server.bytesRead > bytesRead, 'what it goes on sending')
    assert.not(server.destroyed)
    const closed = once(server, 'close')
    for (const call of lingers.values()) call()
    await closed
    assert.is(lingers.size, 0)
  }))

test('a client that then ends leaves no timer', () =>
  staying(async (client, server) => {
    client.end()
    await until(() => lingers.size === 0, 'the end of the timer')
    assert.ok(server.destroyed)
  }))

/** Serves by node:http: /big is not limited, POST / answers the length of the body. Connects a client. */
async function withClient(use: (client: Socket, server: Socket) => Promise<void>): Promise<void> {
  const limited = rateLimit({ limit: 10, window: '1m', key: () => 'all', delay, routes: { '/big': false } })
  const server = createServer((request, response) =>
    limited(request, response, async () => {
      if (request.url === '/big') return response.end(Buffer.alloc(BIG))
      let length = 0
      for await (const part of request) length += part.length
      response.end(`length ${length}`)
    }),
  )
  const ends = await connected(await listen(server))
  await withHours(() => use(...ends))
  ends[0].destroy()
  await shut(server)
  await limited.close()
}

test('the body of a request that waits arrives whole', () =>
  withClient(async (client) => {
    const text = received(client)
    client.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${BIG}\r\n\r\n`)
    client.write(Buffer.alloc(BIG))
    await until(() => hours.size === 1, 'the request')
    const [[timer, call]] = [...hours] as [[unknown, () => void]]
    hours.delete(timer)
    call()
    await until(() => text().includes(`length ${BIG}`), 'the answer')
  }))

test('a client that is slow to read what it has asked for stays connected', () =>
  withClient(async (client, server) => {
    client.pause()
    client.write(request('/big') + request('/'))
    await until(() => hours.size === 1 && server.writableNeedDrain, 'a request behind one that is being sent')
    const text = received(client)
    client.resume()
    await until(() => text().length > BIG, 'what is being sent')
    client.write(request('/'))
    await until(() => hours.size === 2, 'the next request')
    release()
    await until(() => statusesIn(text()).length === 3, 'all answers')
  }))

test('a request that is injected into Fastify waits', () =>
  withHours(async () => {
    const app = Fastify()
    app.register(limitFastify, { limit: 10, window: '1m', key: () => 'all', delay })
    app.get('/', () => 'hello')
    await app.ready()
    const answer = app.inject('/')
    await until(() => hours.size === 1, 'the request')
    release()
    assert.is((await answer).statusCode, 200)
    await app.close()
  }))

test.run()
