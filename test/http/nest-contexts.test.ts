// run: full
// Contexts that are not http, and connections that close.
import { EventEmitter } from 'node:events'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { NestFactory } from '@nestjs/core'
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js'
import type { Decision } from 'millrace'
import {
  RateLimitException,
  RateLimitModule,
  type RateLimitModuleOptions,
  RateLimitService,
  SkipThrottle,
} from 'millrace/nest'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { base } from './nest-app.js'

class Resolver {
  query() {}
}

/** The call of a handler, as Nest makes it for its guards. */
function contextOf(type: string, args: unknown[], handler: object = Resolver.prototype.query) {
  const context = new ExecutionContextHost(args, Resolver, handler as () => void)
  context.setType(type)
  return context
}

/** The service of an app that listens on nothing. */
async function withService(
  options: RateLimitModuleOptions,
  use: (service: RateLimitService) => unknown,
): Promise<void> {
  const app = await NestFactory.createApplicationContext(RateLimitModule.forRoot(options), { logger: false })
  try {
    await use(app.get(RateLimitService))
  } finally {
    await app.close()
  }
}

type Request = IncomingMessage & { rateLimit?: Decision | undefined }

/** A request and its response, as those of a GraphQL context. */
function exchange(): { req: Request; res: FakeResponse } {
  return { req: new IncomingMessage(new Socket()), res: new FakeResponse() }
}

class FakeResponse extends EventEmitter {
  readonly headers = new Map<string, string>()

  getHeader(name: string) {
    return this.headers.get(name.toLowerCase())
  }

  setHeader(name: string, value: string) {
    this.headers.set(name.toLowerCase(), value)
  }
}

/** GraphQL: resolvers are called with the root, arguments, context and info. */
const graphql = (context: object) => contextOf('graphql', [{}, {}, context, {}])
const getRequestResponse: RateLimitModuleOptions['getRequestResponse'] = (context) =>
  context.getType<string>() === 'graphql' ? context.getArgByIndex(2) : undefined

test('calls that are not HTTP pass, unless getRequestResponse finds their requests', async () => {
  await withService({ ...base(), limit: 1 }, (service) => {
    for (const type of ['rpc', 'ws', 'graphql', 'http']) {
      for (const args of [[{}, {}], [], [null], ['text']])
        for (let i = 0; i < 3; i++) assert.is(service.admit(contextOf(type, args)), true)
    }
  })
  await withService({ ...base(), limit: 1, getRequestResponse }, (service) => {
    for (let i = 0; i < 3; i++) assert.is(service.admit(contextOf('rpc', [{}, {}])), true)
    const { req, res } = exchange()
    assert.is(service.admit(graphql({ req, res })), true)
    assert.is(req.rateLimit!.remaining, 0)
    assert.throws(
      () => service.admit(graphql(exchange())),
      (error: unknown) => error instanceof RateLimitException,
    )
  })
})

test('of several handlers that one request calls, each one counts, and the last one sets the headers', async () => {
  await withService({ ...base(), getRequestResponse }, (service) => {
    const { req, res } = exchange()
    for (const left of [1, 0]) {
      assert.is(service.admit(graphql({ req, res })), true)
      assert.is(res.headers.get('ratelimit'), `"default";r=${left};t=61`)
    }
    assert.throws(() => service.admit(graphql({ req, res })), /^Quota Exceeded/)
    assert.is(res.headers.get('ratelimit'), '"default";r=0;t=61')
  })
})

test('a context without a response is limited without headers', async () => {
  const options = { ...base(), limit: 1, getRequestResponse, countIf: () => false, exposeHeaders: true }
  await withService(options, (service) => {
    const { req } = exchange()
    assert.is(service.admit(graphql({ req })), true)
    assert.throws(() => service.admit(graphql({ req })), /^Quota Exceeded/)
  })
})

test('a request whose connection closes while it waits is never handled', async () => {
  await withService({ ...base(), delay: { after: 0, ms: '1h', max: '1h' } }, async (service) => {
    const { req, res } = exchange()
    let isSettled = false
    const settle = () => {
      isSettled = true
    }
    void Promise.resolve(service.admit(contextOf('http', [req, res]))).then(settle, settle)
    assert.is(res.listenerCount('close'), 1)
    res.emit('close')
    await new Promise((resolve) => setImmediate(resolve))
    assert.is(isSettled, false)
  })
})

test('reset forgets a key in all rules', async () => {
  await withService({ ...base(), limit: 1 }, async (service) => {
    const ask = () => service.admit(contextOf('http', Object.values(exchange())))
    assert.is(ask(), true)
    assert.throws(ask)
    await service.reset('nobody')
    assert.is(ask(), true)
  })
})

test('a skipped handler is passed without a look at its request', async () => {
  const skipped = () => {}
  SkipThrottle()(skipped)
  await withService(base(), (service) => {
    assert.is(service.admit(contextOf('http', [], skipped)), true)
  })
})

const FOUND: Record<string, { returns: () => unknown; passes?: true }> = {
  'returns undefined': { returns: () => undefined, passes: true },
  'returns null': { returns: () => null, passes: true },
  'finds no req': { returns: () => ({}), passes: true },
  'finds null as req': { returns: () => ({ req: null }), passes: true },
  'finds text as req': { returns: () => ({ req: 'text' }), passes: true },
  'finds a req without an address': { returns: () => ({ req: {} }) },
  'returns a promise': { returns: async () => Promise.reject(new Error('later')) },
  throws: {
    returns: () => {
      throw new TypeError('own')
    },
  },
}

for (const [what, { returns, passes }] of Object.entries(FOUND)) {
  test(`getRequestResponse ${what}: ${passes ? 'the call passes' : 'onError is asked'}`, async () => {
    for (const type of ['ws', 'graphql', 'rpc', 'http']) {
      for (const answer of ['pass', 'fail'] as const) {
        const errors: unknown[] = []
        const options = {
          limit: 1,
          window: '1m',
          getRequestResponse: returns as RateLimitModuleOptions['getRequestResponse'] & {},
          onError(error: unknown) {
            errors.push(error)
            return answer
          },
        }
        await withService(options, async (service) => {
          for (let i = 0; i < 2; i++) {
            const admit = async () => service.admit(contextOf(type, [{}, {}]))
            if (passes || answer === 'pass') assert.is(await admit(), true)
            else {
              const error = await admit().then(
                () => undefined,
                (thrown) => thrown,
              )
              assert.match(error.message, /Temporary Reduced Capacity/)
            }
          }
        })
        assert.is(errors.length, passes ? 0 : 2)
        if (!passes) assert.match(String(errors[0]), /^MillraceError|^TypeError: own$/)
      }
    }
  })
}

/** A package that only these tests need; undefined where it is not installed. */
const optional = async (name: string) => import(name).catch(() => undefined)

const EXCEPTIONS = {
  ws: ['@nestjs/websockets', 'WsException'],
  rpc: ['@nestjs/microservices', 'RpcException'],
} as const

for (const [type, [name, exception]] of Object.entries(EXCEPTIONS)) {
  const own = await optional(name)
  const claim = own === undefined ? test.skip : test
  claim(`a refusal of ${type} is a ${exception} with the figures`, async () => {
    const options = { ...base(), limit: 1, getRequestResponse: () => ({ req: { headers: {} } }) }
    await withService(options, (service) => {
      const ask = () => service.admit(contextOf(type, [{}, {}]))
      assert.is(ask(), true)
      let thrown: unknown
      try {
        ask()
      } catch (error) {
        thrown = error
      }
      assert.instance(thrown, own[exception])
      const { cause, decision } = thrown as { cause: unknown; decision: Decision }
      assert.instance(cause, RateLimitException)
      assert.is(decision.allowed, false)
      assert.equal((thrown as { getError(): unknown }).getError(), {
        status: 'error',
        code: 429,
        rule: 'default',
        limit: 1,
        remaining: 0,
        retryAfterSeconds: 61,
        message: (cause as Error).message,
      })
    })
  })
}

const graphqlPackage = await optional('graphql')
const claim = graphqlPackage === undefined ? test.skip : test
claim('a refusal of GraphQL is one of its errors, with the figures', async () => {
  const { buildSchema, graphql: run, GraphQLError } = graphqlPackage
  await withService({ ...base(), limit: 1, getRequestResponse }, async (service) => {
    const rootValue = {
      a: () => service.admit(graphql(exchange())),
      b: () => service.admit(graphql(exchange())),
    }
    const schema = buildSchema('type Query { a: Boolean, b: Boolean }')
    const { data, errors } = await run({ schema, source: '{ a b }', rootValue })
    assert.equal({ ...data }, { a: true, b: null })
    assert.instance(errors[0], GraphQLError)
    assert.equal(errors[0].toJSON().extensions, {
      code: 'RATE_LIMITED',
      status: 429,
      rule: 'default',
      limit: 1,
      remaining: 0,
      retryAfterSeconds: 61,
    })
  })
})

test.run()
