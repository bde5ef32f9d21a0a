// Apps of Nest, whose classes are decorated by hand: tests are compiled without decorators.
import {
  Controller,
  type DynamicModule,
  Get,
  type INestApplication,
  type ModuleMetadata,
  Req,
  type Type,
} from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { manualClock } from 'millrace'
import { RateLimitGuard, RateLimitModule, type RateLimitModuleOptions } from 'millrace/nest'
import { decorate, type Platform, start } from './nest-driver.js'

/** Two requests a minute for each `x-key`, on a clock that stands still. */
export const base = (): RateLimitModuleOptions => ({
  limit: 2,
  window: '1m',
  clock: manualClock(1e9),
  key: ({ headers }) => headers['x-key'] ?? 'nobody',
})

/** The guard as that of all handlers. */
export const GUARD = { provide: APP_GUARD, useClass: RateLimitGuard }

type Decorate = ClassDecorator & MethodDecorator

/** A controller at a path, with a handler `GET` at each of the names, and their decorators. */
export function controller(
  path: string,
  handlers: Readonly<Record<string, readonly Decorate[]>>,
  decorators: readonly Decorate[] = [],
): Type {
  class Made {}
  for (const [name, own] of Object.entries(handlers)) {
    const of = { [name]: (request: { rateLimit?: { rule: string } }) => request.rateLimit?.rule ?? 'none' }
    Object.defineProperty(Made.prototype, name, { value: of[name], writable: true, configurable: true })
    decorate(Made, name, [Get(name), ...own], [Req()])
  }
  for (const decorator of [Controller(path), ...decorators]) decorator(Made)
  return Made
}

/** A module with controllers and the guard of all handlers. */
export const appWith = (
  options: RateLimitModuleOptions,
  controllers: readonly Type[],
  metadata: ModuleMetadata = {},
): DynamicModule => ({
  module: class App {},
  ...metadata,
  imports: [RateLimitModule.forRoot(options), ...(metadata.imports ?? [])],
  controllers: [...controllers],
  providers: [GUARD, ...(metadata.providers ?? [])],
})

export interface Running {
  readonly app: INestApplication
  get(path: string, headers?: Record<string, string>): Promise<Response>
  /** The status, and the rules that the response names. */
  ask(path: string): Promise<string>
}

/** Uses an app, and closes it in any case. */
export async function withApp(
  module: DynamicModule,
  use: (running: Running) => Promise<void>,
  platform: Platform = 'express',
  prepare?: (app: INestApplication) => void,
): Promise<void> {
  const app = await start(platform, module, prepare)
  const url = await app.getUrl()
  const get = (path: string, headers = {}) => fetch(url + path, { headers })
  const ask = async (path: string) => {
    const { status, headers } = await get(path)
    return [status, headers.get('ratelimit-policy')].filter((part) => part !== null).join(' ')
  }
  try {
    await use({ app, get, ask })
  } finally {
    await app.close()
  }
}
