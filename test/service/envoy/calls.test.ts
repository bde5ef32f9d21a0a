// How the server answers, apart from limits: errors with their place, callers, health, TLS, bounds, its end.
import { readFileSync, writeFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import * as grpc from '@grpc/grpc-js'
import { Redis } from 'ioredis'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { poll } from '../../redis/poll.js'
import { startRedis } from '../../redis/servers.js'
import { redisTest } from '../../redis/skip.js'
import { makeCertificate } from '../certificates.js'
import { engine } from '../engine.js'
import { temporaryFolder } from '../folder.js'
import { type Client, clientOf, requestOf, withEnvoy } from './stage.js'

const CONFIG = `
domain: test
descriptors:
  - { key: user, rate_limit: { unit: day, requests_per_unit: 3 } }
`
const SERVICE = 'envoy.service.ratelimit.v3.RateLimitService'
const REQUEST = requestOf('test', [['user', 'alice']])
const refusal = (answer: Promise<unknown>) =>
  answer.then(
    () => ({ code: grpc.status.OK, details: '' }),
    (error: grpc.ServiceError) => ({ code: error.code, details: error.details }),
  )

const many = (n: number) => Array.from({ length: n }, (_, i) => ['user', `${i}`])
const LONG = 'x'.repeat(65_536)
const WRONG: readonly (readonly [request: object, place: string])[] = [
  [requestOf('', [['user', 'x']]), 'domain: expected a text that is not empty'],
  [requestOf('x'.repeat(1_025), [['user', 'x']]), 'domain: expected at most 1024 characters'],
  [requestOf('test', []), 'descriptors: expected at least one'],
  [requestOf('test', many(1_025)), 'descriptors: expected at most 1024'],
  [requestOf('test', [['user', 'x'], []]), 'descriptors[1].entries: expected at least one'],
  [requestOf('test', [many(257).flat()]), 'descriptors[0].entries: expected at most 256'],
  [
    requestOf('test', [['user', 'x', '', 'y']]),
    'descriptors[0].entries[1].key: expected a text that is not empty',
  ],
  [
    requestOf('test', [['user', LONG]]),
    'descriptors[0].entries: expected at most 65536 characters of keys and values',
  ],
  [
    requestOf('test', [{ entries: ['user', 'x'], hits_addend: { value: 2 ** 32 } }]),
    'descriptors[0].hits_addend: expected at most 4294967295',
  ],
  [
    requestOf('test', [{ entries: ['user', 'x'], limit: { requests_per_unit: 1 } }]),
    'descriptors[0].limit.unit: expected a unit: 1 (second) to 6 (year)',
  ],
  [
    requestOf('test', [{ entries: ['user', 'x'], limit: { requests_per_unit: 2 ** 22, unit: 'DAY' } }]),
    'descriptors[0].limit.requests_per_unit: expected at most 4194302',
  ],
]

for (const [request, place] of WRONG)
  test(`InvalidArgument: ${place}`, () =>
    withEnvoy(CONFIG, {}, async ({ client, engine: { post } }) => {
      assert.equal(await refusal(client.ask(request)), {
        code: grpc.status.INVALID_ARGUMENT,
        details: `ERR_MILLRACE_INVALID_DESCRIPTOR: ${place}`,
      })
      const { status, body } = await post('/json', request)
      assert.is(status, 400)
      if (!/unit:/.test(place)) assert.is(body.field, place.replace(/: expected.*/, ''))
    }))

test('bytes that are no message are InvalidArgument', () =>
  withEnvoy(CONFIG, {}, async ({ engine: { grpcAddress } }) => {
    const client = new grpc.Client(grpcAddress!, grpc.credentials.createInsecure())
    const asIs = (bytes: Buffer) => bytes
    for (const [bytes, got] of [
      [[0x0a], 'a number that is cut off'],
      [[0x0a, 5, 1], 'a field that is longer than its message'],
      [[0x0a, 1, 0xff], 'a text that is not UTF-8'],
      [[0x02], 'a field without a number'],
      [[0x0b], 'a field of a type that is not known'],
      [Array(11).fill(0xff), 'a number of more than 64 bits'],
    ] as const) {
      const asked = new Promise((resolve, reject) =>
        client.makeUnaryRequest(
          `/${SERVICE}/ShouldRateLimit`,
          asIs,
          asIs,
          Buffer.from(bytes),
          (error, answer) => (error === null ? resolve(answer) : reject(error)),
        ),
      )
      assert.equal(await refusal(asked), {
        code: grpc.status.INVALID_ARGUMENT,
        details: `ERR_MILLRACE_INVALID_BODY: expected a RateLimitRequest, got ${got}`,
      })
    }
    client.close()
  }))

test('callers need a token with the scope decide, if tokens are configured', () => {
  const tokens = [
    { token: 'decide-0123456789abcdef', scopes: ['decide'] },
    { token: 'read-0123456789abcdef', scopes: ['read'] },
  ] as const
  return withEnvoy(CONFIG, { tokens }, async ({ client }) => {
    const codeBy = async (authorization?: string) => {
      const metadata = new grpc.Metadata()
      if (authorization !== undefined) metadata.set('authorization', authorization)
      return (await refusal(client.ask(REQUEST, { metadata }))).code
    }
    assert.is(await codeBy('Bearer decide-0123456789abcdef'), grpc.status.OK)
    assert.is(await codeBy('Bearer read-0123456789abcdef'), grpc.status.PERMISSION_DENIED)
    for (const wrong of [undefined, 'Bearer none-0123456789abcdef', 'Basic YTpi'])
      assert.is(await codeBy(wrong), grpc.status.UNAUTHENTICATED, wrong)
    assert.is(await client.check(''), 'SERVING', 'health needs none')
  })
})

redisTest(
  'a health check whose store has a value that can not be read leaves the engine running',
  async () => {
    const server = await startRedis()
    const redis = new Redis(server.port, '127.0.0.1')
    const monitor = await redis.monitor()
    const asked: string[][] = []
    monitor.on('monitor', (_time: string, args: string[]) => asked.push(args))
    const isProbe = (part: string) => part.includes('{readyz}')
    try {
      await withEnvoy(
        CONFIG,
        { counts: `redis://127.0.0.1:${server.port}`, deadline: '1m' },
        async ({ client }) => {
          assert.is(await client.check(''), 'SERVING')
          await poll(() => asked.some((args) => args.some(isProbe)), 'the probe')
          await redis.lpush(asked.flat().find(isProbe)!, 'no counts')
          assert.is(await client.check(SERVICE), 'NOT_SERVING')
          const watched = client.watch(SERVICE)
          for await (const { status } of watched) {
            assert.is(status, 'NOT_SERVING')
            break
          }
          watched.cancel()
          assert.is((await client.ask(REQUEST)).overall_code, 'OK')
        },
      )
    } finally {
      monitor.disconnect()
      redis.disconnect()
      await server.stop()
    }
  },
)

test('health says whether the server takes requests, until it ends', () =>
  withEnvoy(CONFIG, { drainDelay: '200ms' }, async ({ client, engine: own }) => {
    assert.equal([await client.check(''), await client.check(SERVICE)], ['SERVING', 'SERVING'])
    assert.is((await refusal(client.check('other'))).code, grpc.status.NOT_FOUND)
    const seen: string[] = []
    const watched = client.watch(SERVICE)
    const unknown = client.watch('other')
    for await (const { status } of unknown) {
      assert.is(status, 'SERVICE_UNKNOWN')
      break
    }
    unknown.cancel()
    for await (const { status } of watched) {
      seen.push(status)
      break
    }
    assert.equal(seen, ['SERVING'])
    const closing = own.close()
    assert.is(await client.check(''), 'NOT_SERVING')
    assert.is((await client.ask(REQUEST)).overall_code, 'OK', 'and still answers for drainDelay')
    watched.cancel()
    await closing
    assert.is((await refusal(client.ask(REQUEST, { deadline: 1_000 }))).code, grpc.status.UNAVAILABLE)
  }))

test('TLS, mutual, with files that change', async () => {
  const folder = temporaryFolder()
  for (const name of ['authority', 'next']) makeCertificate(folder, name)
  makeCertificate(folder, 'client', 'authority')
  const pem = (name: string) => readFileSync(folder.path(name))
  writeFileSync(folder.path('limits.yaml'), CONFIG)
  for (const name of ['pem', 'key']) writeFileSync(folder.path(`server.${name}`), pem(`authority.${name}`))
  const own = await engine({
    ...{ envoyConfig: [folder.path('limits.yaml')], grpcPort: 0 },
    ...{ tlsCert: folder.path('server.pem'), tlsKey: folder.path('server.key') },
    tlsClientCa: folder.path('authority.pem'),
  })
  const clients: Client[] = []
  const codeWith = async (authority: string, name?: string) => {
    const own_ = name === undefined ? [] : [pem(`${name}.key`), pem(`${name}.pem`)]
    const client = clientOf(own.grpcAddress!, grpc.credentials.createSsl(pem(authority), ...own_))
    clients.push(client)
    return (await refusal(client.ask(REQUEST))).code
  }
  assert.is(await codeWith('authority.pem', 'client'), grpc.status.OK)
  assert.is(await codeWith('authority.pem'), grpc.status.UNAVAILABLE, 'without a certificate')
  assert.is(await codeWith('authority.pem', 'next'), grpc.status.UNAVAILABLE, 'one of another authority')
  assert.is(
    await codeWith('next.pem', 'client'),
    grpc.status.UNAVAILABLE,
    'the server is not the one expected',
  )
  for (const name of ['pem', 'key']) writeFileSync(folder.path(`server.${name}`), pem(`next.${name}`))
  own.reload()
  assert.is(await codeWith('next.pem', 'client'), grpc.status.OK)
  const plain = clientOf(own.grpcAddress!)
  assert.is((await refusal(plain.ask(REQUEST))).code, grpc.status.UNAVAILABLE)
  for (const client of [...clients, plain]) client.close()
  await own.close()
  folder.remove()
})

test('a message that is too large is refused, and a connection too many is closed', () =>
  withEnvoy(CONFIG, { maxBody: 1_024, maxConnections: 1 }, async ({ client, engine: { grpcAddress } }) => {
    const large = requestOf('test', [['user', 'x'.repeat(2_000)]])
    assert.is((await refusal(client.ask(large))).code, grpc.status.RESOURCE_EXHAUSTED)
    const [host, port] = grpcAddress!.split(':')
    const more = connect(Number(port), host)
    await new Promise((resolve) => more.once('close', resolve))
    assert.is((await refusal(client.ask(REQUEST))).code, grpc.status.OK)
  }))

test('the streams of a connection have a bound, which it is told', () =>
  withEnvoy(CONFIG, { grpcMaxStreams: 7 }, async ({ engine: { grpcAddress } }) => {
    const session = connectHttp2(`http://${grpcAddress}`)
    const settings = await new Promise<{ maxConcurrentStreams?: number }>((resolve) =>
      session.once('remoteSettings', resolve),
    )
    assert.is(settings.maxConcurrentStreams, 7)
    session.destroy()
  }))

test('a connection ends at its age, and the caller makes another one', () =>
  withEnvoy(CONFIG, { grpcConnectionAge: '100ms' }, async ({ client, engine: { grpcAddress } }) => {
    const session = connectHttp2(`http://${grpcAddress}`)
    await new Promise((resolve) => session.once('goaway', resolve))
    session.destroy()
    for (let i = 0; i < 20; i++) assert.is((await refusal(client.ask(REQUEST))).code, grpc.status.OK)
  }))

test('the address of gRPC in use is an error of listening', () =>
  withEnvoy(CONFIG, {}, async ({ engine: { grpcAddress }, write }) => {
    const envoyConfig = [write('other.yaml', CONFIG)]
    const error = await engine({ envoyConfig, grpcPort: Number(grpcAddress!.split(':')[1]) }).catch(
      (reason: NodeJS.ErrnoException) => reason,
    )
    assert.equal(
      [(error as NodeJS.ErrnoException).code, (error as NodeJS.ErrnoException).syscall],
      ['EADDRINUSE', 'listen'],
    )
  }))

test.run()
