import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common'
import { RateLimitService } from './service.js'

/**
 * Limits the handlers of an app, as `APP_GUARD`, or those with `@UseGuards(RateLimitGuard)`. The decision is at
 * `request.rateLimit`.
 */
export class RateLimitGuard implements CanActivate {
  static {
    Injectable()(RateLimitGuard)
    Inject(RateLimitService)(RateLimitGuard, undefined, 0)
  }

  readonly #service: RateLimitService

  /** @param service decides */
  constructor(service: RateLimitService) {
    this.#service = service
  }

  /**
   * Decides a call.
   * @param context the call of a handler
   * @returns true if it passes
   * @throws {RateLimitException} if it does not
   */
  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    return this.#service.admit(context)
  }
}
