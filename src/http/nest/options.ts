import type {
  ExecutionContext,
  InjectionToken,
  ModuleMetadata,
  OptionalFactoryDependency,
  Type,
} from '@nestjs/common'
import type { Decision } from '../../core/decision.js'
import { invalid } from '../../core/errors.js'
import type { GroupDecision } from '../../core/group-decision.js'
import type { Size } from '../../core/sizes.js'
import { isIpKey } from '../addresses/ip-key.js'
import { type GroupLimitOptions, type GroupMemberRules, withKeys } from '../groups/options.js'
import { type Awaitable, type CallLimits, checkOptionsObject, type RateLimitOptions } from '../options.js'
import type { Call, NestRequest, NestResponse } from './framework.js'

/** The functions of the options that are also given Nest's context. */
type InContext = 'limit' | 'key' | 'cost' | 'skip' | 'onLimited'

/** How refused calls are answered, and what the calls of other transports are. */
export interface ContextOptions<D extends Decision> {
  /**
   * Is called for a refused request, in place of throwing a {@link RateLimitException}: throws an exception of
   * your own, or answers by the response. The headers are set.
   * @default throws a RateLimitException
   */
  handler?: ((context: ExecutionContext, decision: D) => unknown) | undefined
  /**
   * The request and response of a context that is not `http`, such as that of GraphQL:
   * `(context) => GqlExecutionContext.create(context).getContext()`. Without `res` no headers are set. Without
   * `req`, or if it returns undefined, the call is not limited. A refusal is a `WsException` for WebSocket
   * gateways, an `RpcException` for microservices, and for GraphQL an error with the figures in `extensions`.
   * @default only HTTP requests are limited
   */
  getRequestResponse?:
    | ((context: ExecutionContext) => { req?: NestRequest; res?: NestResponse } | undefined)
    | undefined
}

/**
 * The options of {@link RateLimitModule.forRoot}. The functions are given the platform's request, and some of
 * them Nest's context too: `context.getHandler()` and `context.getClass()` tell what is called.
 */
export interface RateLimitModuleOptions
  extends Omit<RateLimitOptions<NestRequest, NestResponse>, InContext>,
    ContextOptions<Decision> {
  /**
   * How many units a key may use in any window. As a function: the limit of this request, such as that of the
   * customer's plan; all limits of a key count the same units. With several rules or a `limiter`, the function
   * may return an object with limits by the names of rules, or undefined for the limits of the rules.
   */
  limit?:
    | Size
    | ((request: NestRequest, context: ExecutionContext) => Awaitable<CallLimits | undefined>)
    | undefined
  /**
   * The key that is limited: a string of 1 to 65,536 characters. With an empty or a longer one, a call is
   * limited by its client's address; if that is not known, all such calls count together.
   * @default `ipKey()`: the client's address
   */
  key?: ((request: NestRequest, context: ExecutionContext) => Awaitable<string>) | undefined
  /**
   * The units that this request costs: an integer of 0 or more.
   * @default 1
   */
  cost?: ((request: NestRequest, context: ExecutionContext) => Awaitable<number>) | undefined
  /** Whether to pass this request on without a decision. */
  skip?: ((request: NestRequest, context: ExecutionContext) => Awaitable<boolean>) | undefined
  /**
   * Is called for each request over its limit, for logs and metrics; also if none is refused, with `delay`, and for an
   * address of `deny`. `key` is what is limited, as clients have sent it.
   */
  onLimited?:
    | ((request: NestRequest, decision: Decision, context: ExecutionContext, key: string) => void)
    | undefined
}

/** A provider that makes the options, for `useClass` and `useExisting`. */
export interface RateLimitOptionsFactory {
  createRateLimitOptions(): Awaitable<RateLimitModuleOptions>
}

/** The options of {@link RateLimitModule.forRootAsync}: one of `useFactory`, `useClass` and `useExisting`. */
export interface RateLimitModuleAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  /** What `useFactory` is given. */
  inject?: (InjectionToken | OptionalFactoryDependency)[] | undefined
  /** Returns the options, or a promise of them. */
  // biome-ignore lint/suspicious/noExplicitAny: as in Nest's own providers
  useFactory?: ((...injected: any[]) => Awaitable<RateLimitModuleOptions>) | undefined
  /** A class whose instance, made by Nest, makes the options. */
  useClass?: Type<RateLimitOptionsFactory> | undefined
  /** A provider of one of `imports`, or of a global module, that makes the options. */
  useExisting?: Type<RateLimitOptionsFactory> | undefined
}

/** The options of {@link GroupLimitGuard}. The key functions are also given Nest's context. */
export interface GroupGuardOptions
  extends Omit<GroupLimitOptions<NestRequest, NestResponse>, 'members' | 'onLimited'>,
    ContextOptions<GroupDecision> {
  /** Is called for each call over its limit, for logs and metrics. `key` is that of the member that refused. */
  onLimited?:
    | ((request: NestRequest, decision: GroupDecision, context: ExecutionContext, key: string) => void)
    | undefined
  /** The limiters by names of your choice, each with a key of the request: see `GroupLimitOptions`. */
  members: Readonly<
    Record<
      string,
      Omit<GroupMemberRules<NestRequest>, 'key'> & {
        key?: ((request: NestRequest, context: ExecutionContext) => Awaitable<string>) | undefined
      }
    >
  >
}

/** The options of a group as those of a policy. */
export function groupCallOptions(options: GroupGuardOptions): GroupLimitOptions<Call, Call> {
  checkOptionsObject(options)
  const members = withKeys<Call>(
    options.members,
    (key) =>
      ({ request, context }) =>
        key(request as never, context as never),
  )
  return { ...callOptions(options as unknown as RateLimitModuleOptions), members } as never
}

/** The options of the module as those of a policy, whose requests and responses are calls. */
export function callOptions(options: RateLimitModuleOptions): RateLimitOptions<Call, Call> {
  checkOptionsObject(options)
  const { limit, key, cost, skip, message, countIf, onLimited, onError, getRequestResponse } = options
  if (getRequestResponse !== undefined && typeof getRequestResponse !== 'function') {
    throw invalid('getRequestResponse', getRequestResponse, 'a function')
  }
  const functions = {
    limit: isFunction(limit) && (({ request, context }: Call) => limit(request, context)),
    key: isFunction(key) && !isIpKey(key) && (({ request, context }: Call) => key(request, context)),
    cost: isFunction(cost) && (({ request, context }: Call) => cost(request, context)),
    skip: isFunction(skip) && (({ request, context }: Call) => skip(request, context)),
    message: isFunction(message) && (({ request }: Call, made: Decision) => message(request, made)),
    countIf: isFunction(countIf) && (({ response }: Call) => countIf(response)),
    onLimited:
      isFunction(onLimited) &&
      (({ request, context }: Call, made: Decision, own: string) => onLimited(request, made, context, own)),
    onError: isFunction(onError) && ((error: unknown, { request }: Call) => onError(error, request)),
  }
  const given = Object.entries(functions).filter(([, of]) => of !== false)
  return { ...options, ...Object.fromEntries(given) } as unknown as RateLimitOptions<Call, Call>
}

/** What is no function is left as it is: the policy checks it. */
const isFunction = <T>(value: T): value is Extract<T, (...parameters: never[]) => unknown> =>
  typeof value === 'function'
