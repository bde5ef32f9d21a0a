// run: full
// The recipes for GraphQL, tRPC and gRPC, with the packages and clients of theirs.
import { createServer } from 'node:http'
import type { AddressInfo, Server as NetServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  Client,
  credentials,
  type Server as GrpcServer,
  ServerCredentials,
  type ServiceError,
  status,
} from '@grpc/grpc-js'
import { createTRPCClient, httpBatchLink } from '@trpc/client'
import { createHandler } from 'graphql-http/lib/use/http'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { runRecipe } from './recipe.js'

const portOf = (server: NetServer) => (server.address() as AddressInfo).port

const SCHEMA = `
import { buildSchema } from 'graphql'
const calls = { login: 0, me: 0 }
export const schema = buildSchema('type User { name: String } type Query { me: User, report: String } type Mutation { login: Boolean }')
const { me, report } = schema.getQueryType().getFields()
const { login } = schema.getMutationType().getFields()
me.resolve = () => (calls.me++, { name: 'alice' })
report.extensions.cost = 50
schema.extensions.calls = calls
login.resolve = () => (calls.login++, false)
`

interface Answer {
  readonly data: Record<string, unknown>
  readonly errors?: { message: string; path: string[]; extensions: Record<string, unknown> }[]
}

async function withGraphQL(
  use: (ask: (query: string) => Promise<Answer>, calls: Record<string, number>) => Promise<void>,
): Promise<void> {
  const { schema } = await runRecipe('GraphQL', ['schema'], { 'schema.js': SCHEMA })
  const server = createServer(createHandler({ schema, context: ({ raw }) => raw as never }))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    await use(async (query) => {
      const response = await fetch(`http://127.0.0.1:${portOf(server)}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query }),
      })
      return (await response.json()) as Answer
    }, schema.extensions.calls)
  } finally {
    server.close()
  }
}

const aliases = (field: string, count: number) =>
  Array.from({ length: count }, (_, i) => `a${i}: ${field}`).join(' ')

test('GraphQL: each alias counts, and is refused by itself', () =>
  withGraphQL(async (ask, calls) => {
    const { data, errors } = await ask(`mutation { ${aliases('login', 120)} }`)
    assert.is(calls.login, 100)
    const values = Object.values(data)
    assert.equal(
      [values.filter((one) => one === false).length, values.filter((one) => one === null).length],
      [100, 20],
    )
    assert.is(errors!.length, 20)
    for (const { extensions, message } of errors!) {
      assert.is(message, 'too many')
      assert.is(extensions.code, 'RATE_LIMITED')
      const seconds = Number(extensions.retryAfterSeconds)
      assert.ok(seconds >= 1 && seconds <= 61, `${seconds}`)
    }
    const next = await ask('{ me { name } }') // of queries and mutations there is one limit
    assert.equal(next.data, { me: null })
  }))

test('GraphQL: aliases in fragments count once for each place', () =>
  withGraphQL(async (ask, calls) => {
    const { data, errors } = await ask(
      `{ ...all ... on Query { ${aliases('me { name }', 60)} } } fragment all on Query { b: me { name } ${aliases('me { name }', 80)} }`,
    )
    assert.is(errors, undefined)
    assert.is(calls.me, 81) // GraphQL merges what has the same name
    assert.is(Object.keys(data).length, 81)
  }))

test('GraphQL: a field with a price takes it', () =>
  withGraphQL(async (ask) => {
    const { errors } = await ask(`{ ${aliases('report', 3)} me { name } }`)
    assert.equal(
      errors!.map(({ path }) => path),
      [['a2'], ['me']],
    )
  }))

test('tRPC: a batch counts each call, and refuses those beyond the limit', async () => {
  const { server } = await runRecipe('tRPC', ['server'])
  try {
    const requests: string[] = []
    // biome-ignore lint/suspicious/noExplicitAny: the router of the recipe is JavaScript
    const client: any = createTRPCClient({
      links: [
        httpBatchLink({
          url: `http://127.0.0.1:${portOf(server)}`,
          fetch: (url, init) => {
            requests.push(String(url))
            return fetch(url, init as RequestInit)
          },
        }),
      ],
    })
    const results = await Promise.allSettled(Array.from({ length: 25 }, () => client.hello.query()))
    assert.is(requests.length, 1)
    const refused = results.filter((result) => result.status === 'rejected')
    assert.equal([results.length - refused.length, refused.length], [20, 5])
    for (const { reason } of refused) {
      assert.equal(reason.data.code, 'TOO_MANY_REQUESTS')
      assert.match(reason.message, /^wait \d+ s$/)
    }
  } finally {
    server.close()
  }
})

const METHODS = {
  hello: { path: '/Mill/Hello', requestStream: false, responseStream: false },
  add: { path: '/Mill/Add', requestStream: true, responseStream: false },
} as const
const asIs = (value: Buffer) => value

async function withGrpc(
  address: string,
  use: (client: Client, handled: () => number) => Promise<void>,
): Promise<void> {
  const { server }: { server: GrpcServer } = await runRecipe('gRPC', ['server'])
  let handled = 0
  const service = Object.fromEntries(
    Object.entries(METHODS).map(([name, method]) => [
      name,
      {
        ...method,
        originalName: name,
        requestSerialize: asIs,
        requestDeserialize: asIs,
        responseSerialize: asIs,
        responseDeserialize: asIs,
      },
    ]),
  )
  server.addService(service, {
    hello: (_call: unknown, reply: (error: null, value: Buffer) => void) => {
      handled++
      reply(null, Buffer.from('hello'))
    },
    add: (call: NodeJS.ReadableStream, reply: (error: null, value: Buffer) => void) => {
      handled++
      let bytes = 0
      call.on('data', (chunk: Buffer) => (bytes += chunk.length))
      call.on('end', () => reply(null, Buffer.from(`${bytes}`)))
    },
  })
  const isPath = address.startsWith('unix:')
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(isPath ? address : `${address}:0`, ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    )
  })
  const client = new Client(isPath ? address : `${address}:${port}`, credentials.createInsecure())
  try {
    await use(client, () => handled)
  } finally {
    client.close()
    server.forceShutdown()
  }
}

type Outcome = string | { code: number; details: string }
const outcomeOf = (resolve: (outcome: Outcome) => void) => (error: ServiceError | null, value?: Buffer) =>
  resolve(error === null ? String(value) : { code: error.code, details: error.details })

const helloOf = (client: Client) =>
  new Promise<Outcome>((resolve) =>
    client.makeUnaryRequest(METHODS.hello.path, asIs, asIs, Buffer.from('a'), outcomeOf(resolve)),
  )

for (const address of ['127.0.0.1', '[::1]']) {
  test(`gRPC: calls beyond the limit end with RESOURCE_EXHAUSTED before their handler, at ${address}`, () =>
    withGrpc(address, async (client, handled) => {
      const add = () =>
        new Promise<Outcome>((resolve) => {
          const call = client.makeClientStreamRequest(METHODS.add.path, asIs, asIs, outcomeOf(resolve))
          call.on('error', () => {}) // a refused call can end before all was sent; the outcome says so
          for (let i = 0; i < 3; i++) call.write(Buffer.from('four'))
          call.end()
        })
      assert.is(await add(), '12')
      const outcomes = await Promise.all(Array.from({ length: 103 }, () => helloOf(client)))
      outcomes.push(await add())
      const refused = outcomes.filter((one) => one !== 'hello') as { code: number; details: string }[]
      assert.is(refused.length, 5)
      for (const { code, details } of refused) {
        assert.is(code, status.RESOURCE_EXHAUSTED)
        assert.match(details, /^wait \d+ s$/)
      }
      assert.is(handled(), 100)
    }))
}

test('gRPC: calls on a Unix socket, which have no address, count together', () =>
  withGrpc(`unix:${join(tmpdir(), `millrace-grpc-${process.pid}`)}`, async (client, handled) => {
    const outcomes = await Promise.all(Array.from({ length: 102 }, () => helloOf(client)))
    assert.equal([outcomes.filter((one) => one !== 'hello').length, handled()], [2, 100])
  }))

test.run()
