import { type CustomDecorator, SetMetadata } from '@nestjs/common'
import type { Reflector } from '@nestjs/core'
import { invalid } from '../../core/errors.js'
import type { RouteRules } from '../options.js'

/** The rules of a controller or a handler. */
export interface ThrottleRules extends RouteRules {
  /** Controllers and handlers with the same `groupId` count together, by the rules of the first one. */
  groupId?: string
}

const THROTTLE = 'millrace:throttle'
const SKIP = 'millrace:skip'

/**
 * Gives a controller or a handler rules of its own, in place of those of the module. The rules of a handler
 * replace those of its controller. All handlers of a controller count together; `{}` stands for the rules of
 * the module. A handler with rules is limited even if its controller is skipped.
 * @param rules `limit` and `window` at least, or `rules`, or a `limiter`
 * @returns the decorator
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION` if `rules` is no object. Wrong rules fail when the app
 * starts
 * @example
 * ```ts
 * import { Controller, Post } from '@nestjs/common'
 * import { Throttle } from 'millrace/nest'
 *
 * \@Controller('login')
 * export class LoginController {
 *   \@Post()
 *   \@Throttle({ limit: 5, window: '15m' })
 *   login() {}
 * }
 * ```
 */
export function Throttle(rules: ThrottleRules): CustomDecorator {
  if (typeof rules !== 'object' || rules === null) {
    throw invalid('@Throttle', rules, "an object such as { limit: 5, window: '15m' }")
  }
  return SetMetadata(THROTTLE, rules)
}

/**
 * Leaves a controller or a handler without a limit.
 * @param isSkipped false for a handler that is limited though its controller is skipped
 * @returns the decorator
 */
export function SkipThrottle(isSkipped = true): CustomDecorator {
  return SetMetadata(SKIP, isSkipped)
}

/** What the decorators say of a handler: its rules, false if it is skipped, undefined if they say nothing. */
export function rulesOf(
  reflector: Reflector,
  handler: Decorated,
  controller: Decorated,
): ThrottleRules | false | undefined {
  const own = reflector.get<ThrottleRules | undefined>(THROTTLE, handler)
  const skip = reflector.get<boolean | undefined>(SKIP, handler)
  const isSkipped =
    skip ?? (own === undefined && reflector.get<boolean | undefined>(SKIP, controller) === true)
  if (isSkipped) return false
  return own ?? reflector.get<ThrottleRules | undefined>(THROTTLE, controller)
}

/** What can have metadata. */
export type Decorated = Parameters<Reflector['get']>[1]
