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

type Request = IncomingMessage & { rateLimit?: Decision }

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
    for (const type of ['rpc', 'ws', 'graphql']) {
      for (let i = 0; i < 3; i++) assert.is(service.admit(contextOf(type, [{}, {}])), true)
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

test.run()
