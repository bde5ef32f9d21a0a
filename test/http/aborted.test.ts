// run: also-full, also-long
/** Clients that go away: nothing of their requests stays behind, and nothing of them passes. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { turn, until } from '../limiter/support.js'
import { sized } from '../size.js'
import { type AnyOptions, http1Client } from './driver.js'
import { allDrivers } from './drivers.js'

/** The requests of each framework, in batches: no more connections are open at a time. */
const BATCHES = sized({ quick: 2, full: 8, long: 20 })
const BATCH = sized({ quick: 20, full: 200 })

/** Node.js closes a connection of HTTP/2 whose client resets more than a thousand streams at once. */
const HTTP2_BATCHES = 4

/** The timers of the process. A few of them are those of clients and servers, and come and go. */
const timeouts = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

/** The emitter of a request's connection, in any framework on HTTP/1.1. */
interface Connected {
  socket?: NodeJS.EventEmitter
  req?: { socket?: NodeJS.EventEmitter }
  env?: { incoming?: { socket: NodeJS.EventEmitter } }
}
const socketOf = (request: unknown): NodeJS.EventEmitter | undefined => {
  const { socket, req, env } = request as Connected
  return socket ?? req?.socket ?? env?.incoming?.socket
}

/** Calls `done` when the server has seen that the client of a request has gone. */
function onGone(request: unknown, done: () => void): void {
  const { signal, stream } = request as { signal?: AbortSignal; stream?: NodeJS.EventEmitter }
  if (signal instanceof AbortSignal) signal.addEventListener('abort', done)
  else (stream ?? socketOf(request)!).once('close', done)
}

const listenersOf = (emitter: NodeJS.EventEmitter): number =>
  emitter.eventNames().reduce((sum, name) => sum + emitter.listenerCount(name), 0)

for (const driver of allDrivers) {
  const test = suite(driver.name)
  const { client = http1Client } = driver
  const base: AnyOptions = { limit: 1e6, window: '1m', key: () => 'all' }
  const get = (url: string) => client.fetch(url, { method: 'GET', headers: {} })

  const serving = async (options: AnyOptions, use: (url: string) => Promise<void>) => {
    const errors: unknown[] = []
    const onError = (error: unknown) => {
      errors.push(error)
      return 'fail' as const
    }
    const served = await driver.serve({ ...base, onError, ...options })
    try {
      await use(served.url)
    } finally {
      await served.close()
    }
    assert.equal(errors, [])
  }

  test('closed while it is delayed: its timer ends', async () => {
    let arrived = 0
    const key = () => {
      arrived++
      return 'all'
    }
    await serving({ ...base, key, delay: { after: 0, ms: '1h', max: '1h' } }, async (url) => {
      const before = timeouts()
      const batches = driver.client === undefined ? BATCHES : Math.min(BATCHES, HTTP2_BATCHES)
      for (let batch = 1; batch <= batches; batch++) {
        const closes = Array.from({ length: BATCH }, () => client.open(url, {}))
        await until(() => arrived === batch * BATCH, 'all requests')
        assert.ok(timeouts() > before + BATCH / 2, 'each delayed request has a timer')
        await Promise.all(closes.map((close) => close()))
        await until(() => timeouts() < before + BATCH / 2, 'the end of the timers')
      }
      await until(() => timeouts() <= before + 2, 'the end of all timers')
    })
  })

  test('closed while its key is found: it is not delayed', async () => {
    const resolves: (() => void)[] = []
    let isHeld = true
    let gone = 0
    const key = (request: unknown) => {
      if (!isHeld) return 'all'
      onGone(request, () => gone++)
      return new Promise<string>((found) => resolves.push(() => found('all')))
    }
    const options = { ...base, key, delay: { after: 0, ms: '1h', max: '1h' } } as const
    await serving(options, async (url) => {
      const before = timeouts()
      const closes = Array.from({ length: BATCH }, () => client.open(url, {}))
      await until(() => resolves.length === BATCH, 'all requests')
      await Promise.all(closes.map((close) => close()))
      await until(() => gone === BATCH, 'the end of all connections')
      for (const resolve of resolves) resolve()
      await turn() // all promises have settled
      assert.ok(timeouts() <= before + BATCH / 2, 'no request is delayed')
      isHeld = false
      const next = client.open(url, {})
      await until(() => timeouts() > before, 'the delay of the next request')
      await next()
    })
  })

  if (driver.client === undefined) {
    test('closed before its body: it is limited, and the next one is served', async () =>
      serving(base, async (url) => {
        const { hostname, port } = new URL(url)
        for (let i = 0; i < BATCH; i++) {
          const socket = connect({ host: hostname, port: Number(port) })
          await once(socket, 'connect')
          socket.write('POST /login HTTP/1.1\r\nHost: host\r\nContent-Length: 1000\r\n\r\npart')
          if (i % 2 === 0) await once(socket, 'data') // the answer may come before the whole body
          socket.resetAndDestroy()
        }
        const response = await get(url)
        assert.is(response.status, 200)
      }))

    test('reset at once, so that it has no address: it does not pass, also with onError: pass', async () => {
      if (driver.hasNoSocket) return
      const addressOf = (request: unknown) => (socketOf(request) as Socket).remoteAddress
      for (const key of [{}, { key: addressOf }, { key: async (request: unknown) => addressOf(request) }]) {
        let nameless = 0
        let passed = 0
        const first = { limit: 1, window: '1m', onError: () => 'pass', ...key } as AnyOptions
        const skip = (request: unknown) => {
          if (addressOf(request) === undefined) nameless++
          return false
        }
        const second = { ...base, key: () => `${++passed}` }
        const served = await driver.serve({ ...first, skip }, second)
        const { hostname, port } = new URL(served.url)
        await get(served.url)
        while (nameless < 5) {
          const socket = connect({ host: hostname, port: Number(port) })
          await once(socket, 'connect')
          socket.write('GET / HTTP/1.1\r\nHost: host\r\n\r\n')
          socket.resetAndDestroy()
          await once(socket, 'close')
        }
        assert.is((await get(served.url)).status, 429)
        assert.is(passed, 1)
        await served.close()
      }
    })

    test('requests on one connection leave no listeners on it', async () => {
      if (driver.hasNoSocket) return
      const counts: number[] = []
      const key = (request: unknown) => {
        counts.push(listenersOf(socketOf(request)!))
        return 'all'
      }
      const options = { ...base, key, countIf: () => true, delay: { after: 0, ms: 1, max: 1 } } as const
      await serving(options, async (url) => {
        for (let i = 0; i < BATCH; i++) await (await get(url)).text()
      })
      assert.is(counts.length, BATCH)
      assert.ok(counts.at(-1)! <= counts[1]! + 1, `listeners: ${counts}`)
    })
  }

  test.run()
}
