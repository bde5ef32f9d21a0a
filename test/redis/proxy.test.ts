// run: typescript
// The proxy that loses, delays and holds the replies of a server.
import { once } from 'node:events'
import * as assert from 'uvu/assert'
import { settled, turn } from '../limiter/support.js'
import { poll } from './poll.js'
import type { Server } from './process.js'
import { startProxy, type TcpProxy } from './proxy.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'
import { connectWire, sendOnce, type Wire } from './wire.js'

let redis: Server
let proxy: TcpProxy
let direct: Wire
test.before(async () => {
  redis = await startRedis()
  direct = await connectWire(redis.port)
  proxy = await startProxy(redis.port)
})
test.after(async () => {
  direct?.close()
  proxy?.close()
  await redis?.stop()
})

/** A connection through the proxy, and an empty server. */
async function begin(): Promise<Wire> {
  await direct.send('FLUSHALL')
  return connectWire(proxy.port)
}

const isRejected = async (reply: Promise<unknown>) => (await settled(reply)).status === 'rejected'

test('bytes pass unchanged in both directions, however many', async () => {
  const wire = await begin()
  const value = Buffer.alloc(
    1_000_000,
    Uint8Array.from({ length: 251 }, (_, i) => i),
  )
  await wire.send('SET', 'key', value)
  assert.ok(value.equals(await direct.sendRaw('GET', 'key')))
  assert.ok(value.equals(await wire.sendRaw('GET', 'key')))
  wire.close()
})

test('it counts the connections that it has accepted and those that are open', async () => {
  const before = proxy.accepted
  await poll(() => proxy.open === 0, 'the end of the connections of other tests')
  const wires = [await begin(), await begin()]
  for (const wire of wires) await wire.send('PING')
  assert.is(proxy.accepted - before, 2)
  assert.is(proxy.open, 2)
  wires[0]!.close()
  await poll(() => proxy.open === 1, 'the end of the first')
  wires[1]!.close()
})

test('a cut reply never arrives, though its command was carried out', async () => {
  const wire = await begin()
  await wire.send('INCR', 'key')
  const before = proxy.cut
  proxy.cutReplies()
  assert.ok(await isRejected(wire.send('INCR', 'key')))
  assert.is(proxy.cut - before, 1)
  assert.is(await direct.send('GET', 'key'), '2')
  assert.is(await sendOnce(proxy.port, 'INCR', 'key'), 3, 'once only')
})

test('as many replies are cut as the caller says', async () => {
  await begin().then((wire) => wire.close())
  proxy.cutReplies(2)
  assert.ok(await isRejected(sendOnce(proxy.port, 'INCR', 'key')))
  assert.ok(await isRejected(sendOnce(proxy.port, 'INCR', 'key')))
  assert.is(await sendOnce(proxy.port, 'INCR', 'key'), 3)
})

test('a cut request never reaches the server', async () => {
  const wire = await begin()
  await wire.send('INCR', 'key')
  proxy.cutRequests()
  assert.ok(await isRejected(wire.send('INCR', 'key')))
  assert.is(await direct.send('GET', 'key'), '1')
  assert.is(await sendOnce(proxy.port, 'INCR', 'key'), 2, 'once only')
})

test('a delayed reply arrives later, in its order, and its command is carried out at once', async () => {
  const wire = await begin()
  proxy.delayReplies(60)
  const startedMs = performance.now()
  const arrived: number[] = []
  const first = wire.send('INCR', 'key').then((reply) => {
    arrived.push(reply)
    return performance.now() - startedMs
  })
  await poll(async () => (await direct.send('GET', 'key')) === '1', 'the command')
  proxy.delayReplies(0)
  await wire.send('INCR', 'key').then((reply) => arrived.push(reply))
  assert.ok((await first) >= 60)
  assert.equal(arrived, [1, 2])
  wire.close()
})

test('held replies arrive when they are released', async () => {
  const wire = await begin()
  proxy.hold()
  const arrived: number[] = []
  const replies = [1, 2].map(() => wire.send('INCR', 'key').then((reply) => arrived.push(reply)))
  await poll(async () => (await direct.send('GET', 'key')) === '2', 'the commands')
  await turn()
  assert.equal(arrived, [])
  proxy.release()
  await Promise.all(replies)
  assert.equal(arrived, [1, 2])
  wire.close()
})

test('a silent proxy accepts and loses everything; restored, it closes what has lost something', async () => {
  const wire = await begin()
  await wire.send('PING')
  proxy.dropAll()
  const late = await connectWire(proxy.port)
  const lost = Promise.all([isRejected(wire.send('INCR', 'key')), isRejected(late.send('INCR', 'key'))])
  const untouched = await connectWire(proxy.port)
  await poll(() => proxy.lost === 2, 'the loss of both')
  assert.is(await direct.send('GET', 'key'), null)
  proxy.restore()
  assert.equal(await lost, [true, true])
  assert.is(await untouched.send('INCR', 'key'), 1)
  untouched.close()
})

test('a closed listener refuses, open connections stay until they are cut', async () => {
  const wire = await begin()
  await wire.send('PING')
  proxy.refuse()
  assert.match(String(await connectWire(proxy.port).catch((error) => error)), 'ECONNREFUSED')
  assert.is(await wire.send('PING'), 'PONG')
  const closed = once(wire.socket, 'close')
  proxy.cutAll()
  await closed
  await proxy.accept()
  assert.is(await sendOnce(proxy.port, 'PING'), 'PONG', 'on the same port')
})

test('the end of the server is the end of the connections', async () => {
  const wire = await begin()
  await wire.send('PING')
  const closed = once(wire.socket, 'close')
  await redis.kill()
  await closed
  assert.ok(await isRejected(sendOnce(proxy.port, 'PING')))
  await redis.restart()
  direct = await connectWire(redis.port)
  assert.is(await sendOnce(proxy.port, 'PING'), 'PONG')
})

test.run()
