import 'reflect-metadata'
import {
  Controller,
  type DynamicModule,
  type ExecutionContext,
  Get,
  HttpCode,
  type INestApplication,
  Param,
  Post,
  Req,
  Res,
  UseGuards,
} from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import {
  type Decision,
  type GroupGuardOptions,
  GroupLimitGuard,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitModuleOptions,
  RateLimitService,
} from 'millrace/nest'
import { decisionBody, type FrameworkDriver, isGroup, type Served } from './driver.js'
import { type Nest, newestNest } from './versions.js'

/** What the tests use of the requests and responses of both platforms. */
type Request = { headers: Record<string, string | undefined>; rateLimit?: Decision }
type Response = { statusCode: number; status(code: number): Response }
export const PLATFORMS = ['express', 'fastify'] as const
export type Platform = (typeof PLATFORMS)[number]

/** Decorates a method of a class, and its first parameters. */
export function decorate(
  { prototype }: { readonly prototype: object },
  name: string,
  decorators: readonly MethodDecorator[],
  parameters: readonly ParameterDecorator[] = [],
): void {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name)!
  for (const decorator of decorators) decorator(prototype, name, descriptor)
  for (const [i, parameter] of parameters.entries()) parameter(prototype, name, i)
}

class Routes {
  hello() {
    return 'hello'
  }

  decision({ rateLimit }: Request) {
    return decisionBody(rateLimit)
  }

  status(n: string, response: Response) {
    response.status(Number(n))
  }

  hang() {
    return new Promise(() => {})
  }

  login() {}
}
Controller()(Routes)
decorate(Routes, 'hello', [Get()])
decorate(Routes, 'decision', [Get('decision')], [Req()])
decorate(Routes, 'status', [Get('status/:n')], [Param('n'), Res({ passthrough: true })])
decorate(Routes, 'hang', [Get('hang')])
decorate(Routes, 'login', [Post('login'), HttpCode(401)])

/** A module with limits and a guard of its own. */
const limitedBy = (options: RateLimitModuleOptions): DynamicModule => ({
  module: class Limited {},
  imports: [RateLimitModule.forRoot(options)],
  providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }],
})

/** Starts an app on a free port. `prepare` is given it before it listens. */
export const start = async (
  platform: Platform,
  module: DynamicModule,
  prepare?: (app: INestApplication) => void,
): Promise<INestApplication> => startNest(await newestNest(), platform, module, prepare)

/** Fastify as lenient as Express. */
const AS_EXPRESS = { caseSensitive: false, ignoreTrailingSlash: true }

/** The same in a version of Nest. */
export async function startNest(
  { core, express, fastify }: Pick<Nest, 'core' | 'express' | 'fastify'>,
  platform: Platform,
  module: DynamicModule,
  prepare?: (app: INestApplication) => void,
  options: object = {},
): Promise<INestApplication> {
  const adapter =
    platform === 'express'
      ? new express.ExpressAdapter()
      : new fastify.FastifyAdapter({ forceCloseConnections: true, ...AS_EXPRESS, ...options })
  const app = await core.NestFactory.create(module, adapter, {
    logger: false,
    abortOnError: false,
    forceCloseConnections: true,
  })
  prepare?.(app)
  await app.listen(0, '127.0.0.1')
  return app
}

/** Nest on Express or on Fastify. */
export const nestDriver = (platform: Platform): FrameworkDriver => ({
  name: `Nest on ${platform}`,
  isBehindRouter: true,
  async serve(...chain): Promise<Served> {
    const groups: GroupLimitGuard[] = []
    const moduleOf = (options: object): DynamicModule => {
      if (!isGroup(options)) return limitedBy(options as RateLimitModuleOptions)
      const guard = new GroupLimitGuard(options as GroupGuardOptions)
      groups.push(guard)
      return { module: class Limited {}, providers: [{ provide: APP_GUARD, useValue: guard }] }
    }
    const app = await start(platform, {
      module: class App {},
      imports: chain.map(moduleOf),
      controllers: [Routes],
    })
    const service = groups[0] ?? app.get(RateLimitService, { strict: false })
    return {
      url: await app.getUrl(),
      reset: (key) => service.reset(key as never),
      stats: () => service.stats() as Promise<never>,
      async close() {
        await app.close()
        await Promise.all(groups.map((each) => each.close()))
      },
    }
  },
  async serveRepeatedly(options): Promise<Served> {
    class Guarded {
      hello() {
        return 'hello'
      }
    }
    decorate(Guarded, 'hello', [Get(), UseGuards(RateLimitGuard)])
    UseGuards(RateLimitGuard)(Guarded)
    Controller()(Guarded)
    const app = await start(platform, {
      module: class App {},
      imports: [RateLimitModule.forRoot(options as unknown as RateLimitModuleOptions)],
      controllers: [Guarded],
      providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }],
    })
    const service = app.get(RateLimitService, { strict: false })
    return {
      url: await app.getUrl(),
      reset: (key) => service.reset(key as string),
      stats: () => service.stats(),
      close: () => app.close(),
    }
  },
  header: (request, name) => (request as Request).headers[name],
  statusOf: (response) => (response as Response).statusCode,
  teapot: () => ({
    handler(context: ExecutionContext, { rule }: Decision) {
      context.switchToHttp().getResponse().status(418).type('text/plain').send(rule)
    },
  }),
})
