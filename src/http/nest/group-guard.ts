import type { CanActivate, ExecutionContext } from '@nestjs/common'
import type { GroupStats } from '../../api/limiter-group.js'
import type { TopOptions } from '../../core/refusals.js'
import type { TopKey } from '../../core/top-keys.js'
import { BY_GROUP } from '../groups/group-limits.js'
import type { MemberKeys } from '../groups/options.js'
import { Policy } from '../policy.js'
import type { RateLimitHandles, RateLimitStats } from '../stats.js'
import { Calls } from './calls.js'
import { type Call, NestFramework } from './framework.js'
import { type GroupGuardOptions, groupCallOptions } from './options.js'

/**
 * Limits controllers or handlers by a group: a limiter for each of several keys, such as the account and the client's
 * address. A call passes if all members admit it, else none is charged. It needs no module. Nest does not close it:
 * call `close` for limiters that were made from options, or pass limiters of your own.
 * @example
 * ```ts
 * import { Controller, Post, UseGuards } from '@nestjs/common'
 * import { GroupLimitGuard } from 'millrace/nest'
 *
 * const logins = new GroupLimitGuard({
 *   members: {
 *     account: { limit: 5, window: '15m', key: (request) => request.body.account },
 *     address: { limit: 20, window: '15m' },
 *   },
 * })
 *
 * \@Controller('login')
 * \@UseGuards(logins)
 * export class LoginController {
 *   \@Post()
 *   login() {}
 * }
 * ```
 */
export class GroupLimitGuard implements CanActivate, RateLimitHandles<MemberKeys, GroupStats> {
  readonly #calls: Calls
  readonly #handles: RateLimitHandles<MemberKeys, GroupStats>

  /**
   * @param options `members`: limiters or rules by names of your choice, each with a key of the request
   * @throws {MillraceError} the errors of `createLimiter` and of `group`, and `ERR_MILLRACE_INVALID_OPTION`
   */
  constructor(options: GroupGuardOptions) {
    const own = ['getRequestResponse']
    const policy = new Policy<Call, Call>(
      groupCallOptions(options),
      new NestFramework(() => ''),
      own,
      BY_GROUP,
    )
    this.#calls = new Calls(policy, options)
    this.#handles = policy.handles()
  }

  /**
   * Decides a call.
   * @param context the call of a handler
   * @returns true if it passes
   * @throws {RateLimitException} if it does not
   */
  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    return this.#calls.admit(context)
  }

  /** Forgets what keys have used: `{ account: 'alice' }`. */
  reset(keys: MemberKeys): Promise<void> {
    return this.#handles.reset(keys)
  }

  /** Returns what became of the calls of this thread, by member. */
  stats(): Promise<RateLimitStats<GroupStats>> {
    return this.#handles.stats()
  }

  /** Returns the keys of the calls that were refused most: see {@link Limiter.top}. */
  top(options: TopOptions): Promise<TopKey[]> {
    return this.#handles.top(options)
  }

  /** Closes the limiters that were made from options. */
  close(): Promise<void> {
    return this.#handles.close()
  }
}
