export type { Decision } from '../core/decision.js'
export { type IpKey, type IpKeyOptions, ipKey } from './addresses/ip-key.js'
export type { TrustProxy } from './addresses/trust-proxy.js'
export type { Standard } from './headers/headers.js'
export { SkipThrottle, Throttle, type ThrottleRules } from './nest/decorators.js'
export { RateLimitException } from './nest/exception.js'
export type { NestRequest, NestResponse } from './nest/framework.js'
export { RateLimitGuard } from './nest/guard.js'
export { type MiddlewareOptions, type RateLimiter, rateLimit } from './nest/middleware.js'
export { RateLimitModule } from './nest/module.js'
export type {
  RateLimitModuleAsyncOptions,
  RateLimitModuleOptions,
  RateLimitOptionsFactory,
} from './nest/options.js'
export { RATE_LIMIT_OPTIONS, RateLimitService } from './nest/service.js'
export type { RateLimitOptions, RouteRules } from './options.js'
