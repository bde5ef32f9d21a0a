// run: full
// How refusals reach clients: by exceptions, filters, and the option handler.
import {
  type ArgumentsHost,
  Catch,
  type ExecutionContext,
  HttpException,
  type Provider,
  type Type,
} from '@nestjs/common'
import { APP_FILTER, BaseExceptionFilter } from '@nestjs/core'
import { RateLimitException, type RateLimitModuleOptions } from 'millrace/nest'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { appWith, base, controller, withApp } from './nest-app.js'
import { PLATFORMS, type Platform } from './nest-driver.js'

const cats = controller('cats', { a: [] })

interface Refused {
  readonly status: number
  readonly type: string | undefined
  readonly body: string
}

/** A class of filters, or one of them, as that of all handlers. */
const filterOf = (filter: object): Provider =>
  typeof filter === 'function'
    ? { provide: APP_FILTER, useClass: filter as Type }
    : { provide: APP_FILTER, useValue: filter }

/** The response to the second of two requests, of which one passes. */
async function refusalOf(
  platform: Platform,
  options: Partial<RateLimitModuleOptions>,
  filter?: object,
): Promise<Refused> {
  const providers = filter === undefined ? [] : [filterOf(filter)]
  let found!: Refused
  const module = appWith({ ...base(), limit: 1, ...options }, [cats], { providers })
  await withApp(
    module,
    async ({ get }) => {
      await get('/cats/a')
      const response = await get('/cats/a')
      const [type] = response.headers.get('content-type')?.split(';') ?? []
      found = { status: response.status, type, body: await response.text() }
      assert.is(response.headers.get('retry-after'), '61')
      assert.is(response.headers.get('ratelimit'), '"default";r=0;t=61')
    },
    platform,
  )
  return found
}

const PROBLEM = {
  type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  title: 'Quota Exceeded',
  status: 429,
  detail: 'Retry after 61 seconds.',
  'violated-policies': ['default'],
}

/** Catches all exceptions, and answers by their status and message. */
class Catching {
  readonly caught: unknown[] = []

  catch(exception: unknown, host: ArgumentsHost) {
    this.caught.push(exception)
    const { status, message } = exception as { status: number; message: string }
    host.switchToHttp().getResponse().status(status).send({ message })
  }
}
Catch()(Catching)

for (const platform of PLATFORMS) {
  test(`on ${platform} a filter that hands on the exception's response answers as Nest does`, async () => {
    class Logging extends BaseExceptionFilter {}
    Catch()(Logging)
    for (const filter of [undefined, Logging]) {
      const problem = await refusalOf(platform, {}, filter)
      assert.equal([problem.status, problem.type], [429, 'application/problem+json'])
      assert.equal(JSON.parse(problem.body), PROBLEM)
      assert.equal(await refusalOf(platform, { message: 'slowly', statusCode: 503 }, filter), {
        status: 503,
        type: 'text/plain',
        body: 'slowly',
      })
    }
  })

  test(`on ${platform} filters see an HttpException with the decision and the problem document`, async () => {
    const filter = new Catching()
    assert.equal(await refusalOf(platform, {}, filter), {
      status: 429,
      type: 'application/json',
      body: '{"message":"Quota Exceeded. Retry after 61 seconds."}',
    })
    const [exception, ...others] = filter.caught as RateLimitException[]
    assert.is(others.length, 0)
    assert.instance(exception, HttpException)
    assert.instance(exception, RateLimitException)
    assert.is(exception!.name, 'RateLimitException')
    assert.is(exception!.decision!.retryAfterSeconds, 61)
    assert.equal(exception!.getResponse(), PROBLEM)
  })

  test(`on ${platform} filters see a message as the response of the exception`, async () => {
    for (const [message, expected] of [
      ['slowly', { statusCode: 429, message: 'slowly' }],
      [{ error: 'slowly' }, { error: 'slowly' }],
    ] as const) {
      const filter = new Catching()
      await refusalOf(platform, { message }, filter)
      const [exception] = filter.caught as RateLimitException[]
      assert.equal(exception!.getResponse(), expected)
    }
  })

  for (const later of [false, true]) {
    const name = `on ${platform} handler, ${later ? 'with' : 'without'} a promise`

    test(`${name}, throws an exception in place of ours`, async () => {
      const fail = (context: ExecutionContext, { rule }: { rule: string }) => {
        throw new HttpException(`${context.getHandler().name} ${rule}`, 418)
      }
      const handler = later ? async (...of: Parameters<typeof fail>) => fail(...of) : fail
      const { status, body } = await refusalOf(platform, { handler })
      assert.equal([status, body], [418, '{"statusCode":418,"message":"a default"}'])
    })

    test(`${name}, answers by the response, and nothing else answers`, async () => {
      const filter = new Catching()
      const answer = (context: ExecutionContext) => {
        context.switchToHttp().getResponse().status(418).send('slowly')
      }
      const handler = later ? async (context: ExecutionContext) => answer(context) : answer
      const { status, body } = await refusalOf(platform, { handler }, filter)
      assert.equal([status, body, filter.caught], [418, 'slowly', []])
    })
  }

  test(`on ${platform} an address of deny and a failed decision are exceptions without a decision`, async () => {
    const fail = () => {
      throw new Error('no key')
    }
    for (const [options, status, message] of [
      [{ deny: ['127.0.0.0/8'] }, 403, 'Forbidden'],
      [
        { key: fail, onError: () => 'fail' },
        503,
        'Temporary Reduced Capacity. The server can not take this request at present.',
      ],
    ] as const) {
      const filter = new Catching()
      const providers = [{ provide: APP_FILTER, useValue: filter }]
      await withApp(
        appWith({ ...base(), ...options } as RateLimitModuleOptions, [cats], { providers }),
        async ({ get }) => assert.is((await get('/cats/a')).status, status),
        platform,
      )
      const [exception] = filter.caught as RateLimitException[]
      assert.equal([exception!.message, exception!.decision], [message, undefined])
    }
  })
}

test.run()
