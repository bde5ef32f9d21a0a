// Bad protobuf, huge and nested messages, streams by the thousand, resets: nothing ends the server, and memory is bounded.
import { connect } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import { getHeapStatistics } from 'node:v8'
import * as grpc from '@grpc/grpc-js'
import { readRequest, writeResponse } from 'millrace-service/dist/envoy/contract.js'
import { WireError } from 'millrace-service/dist/envoy/protobuf.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../../fast-check.js'
import { requestOf, withEnvoy } from './stage.js'

const CONFIG = `
domain: test
descriptors:
  - { key: user, rate_limit: { unit: day, requests_per_unit: 1000000 } }
`
const METHOD = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
const RIGHT = Buffer.from('0a04746573741210' + '0a0e0a04757365721206616c69636531', 'hex')

test('bytes are a request, or a WireError', () => {
  const isRead = (bytes: Uint8Array) => {
    try {
      const { domain, descriptors, hitsAddend } = readRequest(bytes)
      return typeof domain === 'string' && Array.isArray(descriptors) && Number.isInteger(hitsAddend)
    } catch (error) {
      return error instanceof WireError
    }
  }
  fc.assert(fc.property(fc.uint8Array({ maxLength: 64 }), isRead), { numRuns: 5_000 })
  // a right message with some bytes changed goes deeper
  const changes = fc.array(fc.tuple(fc.nat(RIGHT.length - 1), fc.nat(255)), { maxLength: 4 })
  fc.assert(
    fc.property(changes, (list) => {
      const bytes = Buffer.from(RIGHT)
      for (const [at, byte] of list) bytes[at] = byte
      return isRead(bytes)
    }),
    { numRuns: 5_000 },
  )
  for (let end = 0; end <= RIGHT.length; end++) assert.ok(isRead(RIGHT.subarray(0, end)))
})

test('answers of any length are written whole', () => {
  for (const names of [0, 1, 120, 130, 20_000]) {
    const status = {
      code: 1 as const,
      currentLimit: { requestsPerUnit: 5, unit: 2, name: 'ä'.repeat(names) },
      limitRemaining: 2 ** 32 - 1,
      resetMs: 61_000.5,
    }
    const bytes = writeResponse({ overallCode: 1, statuses: [status, status], responseHeadersToAdd: [] })
    assert.ok(bytes.includes(Buffer.from('ä'.repeat(names))))
    assert.is(bytes.filter((byte) => byte === 0xff).length >= 8, true)
  }
})

test('wrong and huge messages are answered, and the next one too', () =>
  withEnvoy(CONFIG, {}, async ({ engine: { grpcAddress }, codes }) => {
    const client = new grpc.Client(grpcAddress!, grpc.credentials.createInsecure())
    const asIs = (bytes: Buffer) => bytes
    const send = (bytes: Buffer) =>
      new Promise<number>((resolve) =>
        client.makeUnaryRequest(METHOD, asIs, asIs, bytes, (error) => resolve(error?.code ?? grpc.status.OK)),
      )
    let nested = Buffer.alloc(0)
    for (let i = 0; i < 2_000; i++)
      nested = Buffer.concat([Buffer.from([0x12, 0x80 | (nested.length & 0x7f), nested.length >> 7]), nested])
    const expected = [grpc.status.OK, grpc.status.INVALID_ARGUMENT, grpc.status.RESOURCE_EXHAUSTED]
    for (const bytes of [
      nested,
      Buffer.alloc(2 ** 20 + 1),
      Buffer.alloc(2 ** 20, 0x12),
      Buffer.alloc(500_000, 0xff),
    ])
      assert.ok(expected.includes(await send(bytes)))
    for (let i = 0; i < 300; i++) {
      const bytes = Buffer.from(RIGHT)
      bytes[i % bytes.length] = (i * 37) % 256
      assert.ok(expected.includes(await send(bytes)))
    }
    client.close()
    assert.is(await codes(['user', 'x']), 'ok ok')
  }))

test('streams that are reset at once, and bytes that are no HTTP/2, leave no memory behind', () =>
  withEnvoy(CONFIG, { grpcMaxStreams: 100 }, async ({ engine: { grpcAddress }, codes }) => {
    const headers = { ':method': 'POST', ':path': METHOD, 'content-type': 'application/grpc', te: 'trailers' }
    const round = async () => {
      const session = connect(`http://${grpcAddress}`)
      session.on('error', () => {})
      const closed = new Promise((resolve) => session.once('close', resolve))
      for (let i = 0; i < 500 && !session.destroyed && !session.closed; i++) {
        const stream = session.request(headers)
        stream.on('error', () => {})
        stream.close(8) // CANCEL
      }
      setImmediate(() => session.destroy())
      await closed
    }
    const noise = () =>
      new Promise<void>((resolve) => {
        const [host, port] = grpcAddress!.split(':')
        const socket = connectTcp(Number(port), host, () => socket.end(Buffer.alloc(1_000, 0x41)))
        socket.on('error', () => {}).on('close', () => resolve())
        socket.resume()
      })
    const heap = () => getHeapStatistics().used_heap_size / 2 ** 20
    for (let i = 0; i < 10; i++) await round()
    const before = heap()
    for (let i = 0; i < 60; i++) await round()
    for (let i = 0; i < 50; i++) await noise()
    assert.ok(heap() - before < 100, `${heap() - before} MiB more`)
    assert.is(await codes(['user', 'x']), 'ok ok')
  }))

test('many calls at once, and calls that are cancelled', () =>
  withEnvoy(CONFIG, {}, async ({ client, ask }) => {
    const request = requestOf('test', [['user', 'x']])
    const all = await Promise.all(Array.from({ length: 3_000 }, () => client.ask(request)))
    assert.ok(all.every(({ overall_code }) => overall_code === 'OK'))
    const late = await Promise.all(
      Array.from({ length: 300 }, () =>
        client.ask(request, { deadline: 0 }).then(
          () => 0,
          (error: grpc.ServiceError) => error.code,
        ),
      ),
    )
    assert.ok(late.every((code) => code === 0 || code === grpc.status.DEADLINE_EXCEEDED))
    const { statuses } = await ask({ entries: ['user', 'x'], hits_addend: { value: 0 } })
    const used = 1_000_000 - statuses[0]!.limit_remaining
    assert.ok(used >= 3_000 && used <= 3_300, `${used}`)
  }))

test.run()
