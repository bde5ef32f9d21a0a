// run: full
// forRoot, forRootAsync, several modules, middleware, and the end of an app.
import { type DynamicModule, type INestApplication, type MiddlewareConsumer, UseGuards } from '@nestjs/common'
import { createLimiter } from 'millrace'
import {
  RateLimitGuard,
  RateLimitModule,
  type RateLimitModuleAsyncOptions,
  type RateLimitModuleOptions,
  RateLimitService,
  rateLimit,
} from 'millrace/nest'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { appWith, base, controller, GUARD, withApp } from './nest-app.js'
import { PLATFORMS, start } from './nest-driver.js'

const cats = controller('cats', { a: [], b: [] })

/** Provides a limit, for `inject`. */
const settings = (limit: number): DynamicModule => ({
  module: class Settings {},
  providers: [{ provide: 'LIMIT', useValue: limit }],
  exports: ['LIMIT'],
})

test('forRootAsync takes options from a factory, a class, or a provider of another module', async () => {
  class Options {
    createRateLimitOptions = (): RateLimitModuleOptions => ({ ...base(), limit: 3 })
  }
  const providing = { module: class Providing {}, providers: [Options], exports: [Options] }
  const ways: RateLimitModuleAsyncOptions[] = [
    {
      imports: [settings(3)],
      inject: ['LIMIT'],
      useFactory: async (limit: number) => ({ ...base(), limit }),
    },
    { useFactory: () => ({ ...base(), limit: 3 }) },
    { useClass: Options },
    { imports: [providing], useExisting: Options },
  ]
  for (const way of ways) {
    const module = {
      module: class App {},
      imports: [RateLimitModule.forRootAsync(way)],
      controllers: [cats],
      providers: [GUARD],
    }
    await withApp(module, async ({ ask }) => assert.is(await ask('/cats/a'), '200 "default";q=3;w=60'))
  }
})

test('wrong options fail when the app starts', async () => {
  assert.throws(() => RateLimitModule.forRootAsync({}), /useFactory, useClass or useExisting/)
  for (const [wrong, message] of [
    [{ windw: '1m' }, /windw/],
    [{ key: 'ip' }, /key: expected a function/],
    [{ handler: true }, /handler: expected a function/],
    [{ getRequestResponse: {} }, /getRequestResponse: expected a function/],
  ] as const) {
    const module = appWith({ ...base(), ...wrong } as unknown as RateLimitModuleOptions, [cats])
    try {
      await (await start('express', module)).close()
      assert.unreachable(String(message))
    } catch (error) {
      assert.match((error as Error).message, message)
    }
  }
})

test('a module with options of its own limits its handlers by them, beside the guard of the app', async () => {
  const feature: DynamicModule = {
    module: class Feature {},
    imports: [RateLimitModule.forRoot({ ...base(), name: 'feature', limit: 1 })],
    controllers: [controller('dogs', { a: [] }, [UseGuards(RateLimitGuard)])],
  }
  await withApp(appWith(base(), [cats], { imports: [feature] }), async ({ ask }) => {
    assert.is(await ask('/dogs/a'), '200 "default";q=2;w=60, "feature";q=1;w=60')
    assert.is(await ask('/dogs/a'), '429 "default";q=2;w=60, "feature";q=1;w=60')
    assert.is(await ask('/cats/a'), '429 "default";q=2;w=60')
  })
})

test('without APP_GUARD only handlers with @UseGuards are limited', async () => {
  const module = {
    module: class App {},
    imports: [RateLimitModule.forRoot(base())],
    controllers: [controller('cats', { a: [UseGuards(RateLimitGuard)], b: [] })],
  }
  await withApp(module, async ({ ask }) => {
    assert.is(await ask('/cats/a'), '200 "default";q=2;w=60')
    assert.is(await ask('/cats/b'), '200')
  })
})

test('a guard of your own may extend RateLimitGuard', async () => {
  class Lenient extends RateLimitGuard {
    override canActivate(context: Parameters<RateLimitGuard['canActivate']>[0]) {
      return context.getHandler().name === 'b' || super.canActivate(context)
    }
  }
  const cats = controller('cats', { a: [UseGuards(Lenient)], b: [UseGuards(Lenient)] })
  const module = { module: class App {}, imports: [RateLimitModule.forRoot(base())], controllers: [cats] }
  await withApp(module, async ({ ask }) => {
    assert.is(await ask('/cats/a'), '200 "default";q=2;w=60')
    assert.is(await ask('/cats/b'), '200')
  })
})

test('functions of the options are also given the context: here each handler counts for itself', async () => {
  const limited: string[] = []
  const options: RateLimitModuleOptions = {
    ...base(),
    key: (request, context) => `${request.headers['x-key']} ${context.getHandler().name}`,
    limit: (_, context) => (context.getHandler().name === 'a' ? 1 : 5),
    cost: (_, context) => (context.getClass() === cats ? 1 : 0),
    skip: (_, context) => context.getType() !== 'http',
    onLimited: (_, { rule }, context) => limited.push(`${rule} ${context.getHandler().name}`),
  }
  await withApp(appWith(options, [cats]), async ({ ask }) => {
    assert.is(await ask('/cats/a'), '200 "default";q=1;w=60')
    assert.is(await ask('/cats/a'), '429 "default";q=1;w=60')
    assert.is(await ask('/cats/b'), '200 "default";q=5;w=60')
  })
  assert.equal(limited, ['default a'])
})

for (const platform of PLATFORMS) {
  test(`rateLimit is middleware on ${platform}: it limits paths without a handler, and the guard follows it`, async () => {
    const limited = rateLimit({ ...middleware(), name: 'all', limit: 3, routes: { '/free/*': false } })
    const use = (app: INestApplication) => void app.use(limited)
    await withApp(
      appWith(base(), [cats]),
      async ({ ask, get }) => {
        assert.is(await ask('/nowhere'), '404 "all";q=3;w=60')
        assert.is(await ask('/free/nowhere'), '404')
        assert.is(await ask('/cats/a'), '200 "all";q=3;w=60, "default";q=2;w=60')
        assert.is(await ask('/cats/a'), '200 "all";q=3;w=60, "default";q=2;w=60')
        const refused = await get('/nowhere')
        assert.is(refused.status, 429)
        assert.is(refused.headers.get('content-type'), 'application/problem+json')
        await limited.reset('nobody')
        assert.is(await ask('/nowhere'), '404 "all";q=3;w=60')
      },
      platform,
      use,
    )
    await limited.close()
  })

  test(`rateLimit is middleware of a module on ${platform}, with a handler of its own, also if it decides later`, async () => {
    const limited = rateLimit({
      ...middleware(),
      limit: 1,
      key: async ({ headers }) => headers['x-key'] ?? 'nobody',
      handler(_, response, __, { rule }) {
        response.statusCode = 418
        response.end(rule)
      },
    })
    class App {
      configure(consumer: MiddlewareConsumer) {
        consumer.apply(limited).forRoutes('cats/a')
      }
    }
    await withApp(
      { module: App, controllers: [cats] },
      async ({ ask }) => {
        assert.is(await ask('/cats/a'), '200 "default";q=1;w=60')
        assert.is(await ask('/cats/a'), '418 "default";q=1;w=60')
        assert.is(await ask('/cats/b'), '200')
      },
      platform,
    )
    await limited.close()
  })
}

const middleware = () => {
  const { clock, window, key } = base()
  return {
    clock: clock!,
    window: window!,
    key: key as (request: { headers: Record<string, string> }) => string,
  }
}

test('an app closes the limiters that were made from options, and no others', async () => {
  const limiter = createLimiter({ limit: 1, window: '1h' })
  const app = await start('express', appWith({ ...base(), routes: { '/own': { limiter } } }, [cats]))
  const service = app.get(RateLimitService, { strict: false })
  await app.close()
  try {
    await service.reset('nobody')
    assert.unreachable('the limiter of the module is open')
  } catch (error) {
    assert.is((error as { code?: string }).code, 'ERR_MILLRACE_CLOSED')
  }
  assert.is(limiter.check('somebody').allowed, true)
  await limiter.close()
})

test.run()
