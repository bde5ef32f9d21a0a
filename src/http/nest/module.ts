import { type DynamicModule, Module, type Provider } from '@nestjs/common'
import { invalid } from '../../core/errors.js'

import { RateLimitGuard } from './guard.js'
import type {
  RateLimitModuleAsyncOptions,
  RateLimitModuleOptions,
  RateLimitOptionsFactory,
} from './options.js'
import { RATE_LIMIT_OPTIONS, RateLimitService } from './service.js'

/** Provides {@link RateLimitGuard} and {@link RateLimitService} to all modules of an app. */
// biome-ignore lint/complexity/noStaticOnlyClass: a module of Nest is a class
export class RateLimitModule {
  static {
    Module({})(RateLimitModule)
  }

  /**
   * Configures the module.
   * @param options the rule (`limit` and `window` at least), or `rules`, a `limiter`, or `routes`
   * @returns the module for `imports`. Wrong options fail when the app starts
   * @example
   * ```ts
   * import { Module } from '@nestjs/common'
   * import { APP_GUARD } from '@nestjs/core'
   * import { RateLimitGuard, RateLimitModule } from 'millrace/nest'
   *
   * \@Module({
   *   imports: [RateLimitModule.forRoot({ limit: 100, window: '1m' })],
   *   providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }],
   * })
   * export class AppModule {}
   * ```
   */
  static forRoot(options: RateLimitModuleOptions): DynamicModule {
    return moduleWith([{ provide: RATE_LIMIT_OPTIONS, useValue: options }])
  }

  /**
   * Configures the module by what other modules provide.
   * @param options how the options are made
   * @returns the module for `imports`
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION` if the options do not say how
   */
  static forRootAsync(options: RateLimitModuleAsyncOptions): DynamicModule {
    const { imports = [], inject = [], useFactory, useClass, useExisting } = options
    if (useFactory !== undefined) {
      return moduleWith([{ provide: RATE_LIMIT_OPTIONS, useFactory, inject }], imports)
    }
    const maker = useExisting ?? useClass
    if (maker === undefined) {
      throw invalid('forRootAsync', options, 'an object with useFactory, useClass or useExisting')
    }
    const made: Provider = {
      provide: RATE_LIMIT_OPTIONS,
      useFactory: (factory: RateLimitOptionsFactory) => factory.createRateLimitOptions(),
      inject: [maker],
    }
    return moduleWith(useExisting === undefined ? [made, maker] : [made], imports)
  }
}

function moduleWith(
  providers: Provider[],
  imports: NonNullable<DynamicModule['imports']> = [],
): DynamicModule {
  return {
    module: RateLimitModule,
    global: true,
    imports,
    providers: [...providers, RateLimitService, RateLimitGuard],
    exports: [RateLimitService, RateLimitGuard],
  }
}
