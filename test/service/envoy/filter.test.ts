// Envoy's rate limit filter, played by a client of gRPC: requests as it sends them, deadlines of 20 ms, and what it does
// with an answer and without one (`failure_mode_deny`). Redis stands still meanwhile.
import * as grpc from '@grpc/grpc-js'
import { test as any } from 'uvu'
import * as assert from 'uvu/assert'
import { poll } from '../../redis/poll.js'
import { startRedis } from '../../redis/servers.js'
import { redisTest as test } from '../../redis/skip.js'
import { type Client, type Descriptor, requestOf, withEnvoy } from './stage.js'

const CONFIG = `
domain: test
descriptors:
  - { key: remote_address, rate_limit: { unit: hour, requests_per_unit: 3 } }
  - key: generic_key
    value: api
    descriptors:
      - { key: header_match, value: post, rate_limit: { unit: hour, requests_per_unit: 1000 } }
`

/** A request of a browser, as the actions of a route make descriptors of it: in the order of the actions. */
const recorded = (address: string): Descriptor[] => [
  ['remote_address', address],
  ['generic_key', 'api', 'header_match', 'post'],
]

interface Filter {
  readonly client: Client
  readonly failureModeDeny: boolean
}

/** The status that the browser gets: 429 over the limit, 500 without an answer by failure_mode_deny, else 200. */
async function passed({ client, failureModeDeny }: Filter, address: string): Promise<number> {
  const metadata = new grpc.Metadata()
  metadata.set('x-request-id', address)
  metadata.set('x-envoy-internal', 'true')
  try {
    const request = requestOf('test', recorded(address))
    const { overall_code } = await client.ask(request, { deadline: 20, metadata })
    return overall_code === 'OVER_LIMIT' ? 429 : 200
  } catch (error) {
    const { code } = error as grpc.ServiceError
    assert.ok([grpc.status.UNAVAILABLE, grpc.status.DEADLINE_EXCEEDED].includes(code), `status ${code}`)
    return failureModeDeny ? 500 : 200
  }
}

any('the filter passes three requests of each address, and refuses the rest with 429', () =>
  withEnvoy(CONFIG, {}, async ({ client, codes }) => {
    const filter = { client, failureModeDeny: true }
    for (const address of ['::1', '10.0.0.1']) {
      const statuses: number[] = []
      for (let i = 0; i < 8; i++) statuses.push(await passed(filter, address))
      // A busy machine misses deadlines: such a call may be charged, and was admitted to nobody.
      const [admitted, late] = [200, 500].map((code) => statuses.filter((status) => status === code).length)
      let later = 0
      while ((await codes(...recorded(address))) === 'ok ok ok') later++
      assert.ok(admitted! + later <= 3, statuses.join())
      assert.ok(admitted! + later + late! >= 3, statuses.join())
    }
  }),
)

for (const onOutage of ['closed', 'open'] as const)
  test(`${onOutage}: with Redis stopped, every call is answered by its deadline, and none is over the limit`, async () => {
    const server = await startRedis()
    const counts = `redis://127.0.0.1:${server.port}`
    try {
      await withEnvoy(CONFIG, { counts, onOutage, deadline: '50ms' }, async ({ client, ask, engine }) => {
        await poll(async () => (await ask(['free', 'x'])) !== undefined, 'an answer')
        await server.pause()
        const deny = { client, failureModeDeny: true }
        const statuses = await Promise.all(
          Array.from({ length: 300 }, (_, i) => passed(deny, `10.0.0.${i % 7}`)),
        )
        assert.ok(!statuses.includes(429), 'an outage is never over the limit')
        if (onOutage === 'closed') assert.ok(statuses.every((status) => status === 500))
        const open = await Promise.all(
          Array.from({ length: 50 }, () => passed({ client, failureModeDeny: false }, '10.0.0.1')),
        )
        assert.ok(
          open.every((status) => status === 200),
          'without failure_mode_deny all pass',
        )
        if (onOutage === 'closed') {
          const asked = client.ask(requestOf('test', recorded('x')), { deadline: 60_000 })
          const error = await asked.catch((reason: grpc.ServiceError) => reason)
          assert.is((error as grpc.ServiceError).code, grpc.status.UNAVAILABLE)
          assert.match((error as grpc.ServiceError).details, /^ERR_MILLRACE_UNDECIDED: /)
          assert.is((await engine.get('/readyz')).status, 503)
          assert.is(await client.check(''), 'NOT_SERVING')
        }
        server.resume()
      })
    } finally {
      server.resume()
      await server.stop()
    }
  })

test('a store that has not answered before the deadline of a call is UNAVAILABLE, a little before', async () => {
  const server = await startRedis()
  try {
    const counts = `redis://127.0.0.1:${server.port}`
    await withEnvoy(CONFIG, { counts, deadline: '1m' }, async ({ client, ask }) => {
      await ask(['remote_address', 'warm'])
      await server.pause()
      const asked = client.ask(requestOf('test', recorded('x')), { deadline: 2_000 })
      const error = await asked.catch((reason: grpc.ServiceError) => reason)
      assert.is((error as grpc.ServiceError).code, grpc.status.UNAVAILABLE)
      assert.match((error as grpc.ServiceError).details, /before the deadline of the call/)
      server.resume()
    })
  } finally {
    server.resume()
    await server.stop()
  }
})

any.run()
