export { ipKey } from './addresses/ip-key.js'
export type * from './framework-types.js'
export { SkipThrottle, Throttle, type ThrottleRules } from './nest/decorators.js'
export { RateLimitException } from './nest/exception.js'
export type { Limited, NestRequest, NestResponse } from './nest/framework.js'
export { GroupLimitGuard } from './nest/group-guard.js'
export { RateLimitGuard } from './nest/guard.js'
export {
  type GroupMiddlewareOptions,
  groupLimit,
  type MiddlewareOptions,
  type RateLimiter,
  rateLimit,
} from './nest/middleware.js'
export { RateLimitModule } from './nest/module.js'
export type {
  GroupGuardOptions,
  RateLimitModuleAsyncOptions,
  RateLimitModuleOptions,
  RateLimitOptionsFactory,
} from './nest/options.js'
export { RATE_LIMIT_OPTIONS, RateLimitService } from './nest/service.js'
export { type HeaderPlace, type WriteHeadersOptions, writeHeaders } from './write-headers.js'
