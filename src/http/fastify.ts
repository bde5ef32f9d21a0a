import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'
import type { Decision } from '../core/decision.js'
import { invalid } from '../core/errors.js'
import type { GroupDecision } from '../core/group-decision.js'
import type { TopOptions } from '../core/refusals.js'
import type { TopKey } from '../core/top-keys.js'
import type { Framework } from './framework.js'
import { BY_GROUP } from './groups/group-limits.js'
import type { GroupLimitOptions, MemberKeys } from './groups/options.js'
import type { Judging } from './judging.js'
import { connectionOf, hasGone, onEnd } from './node-framework.js'
import type { RateLimitOptions, RequestOptions, RouteRules } from './options.js'
import { Policy } from './policy.js'
import { RateLimitError } from './rate-limit-error.js'
import { fastifyPathsOf, isWithin, type Paths, pathsWithin } from './readings.js'
import { type SemicolonConfig, usesSemicolon } from './routes/request-path.js'
import { RouteGroups } from './routes/route-groups.js'
import { RouteLimits } from './routes/route-limits.js'
import type { RateLimitStats } from './stats.js'
import { GONE, type Refusal, type Step } from './step.js'

export { ipKey } from './addresses/ip-key.js'
export type * from './framework-types.js'
export { RateLimitError } from './rate-limit-error.js'
export { type HeaderPlace, type WriteHeadersOptions, writeHeaders } from './write-headers.js'

const HOOKS = ['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const

/** When requests are limited, and how refused ones are answered. */
export interface FastifyAnswers<D extends Decision> {
  /**
   * Whether a request that does not pass is handed to the framework's own error handling, as a {@link RateLimitError}.
   * The headers are set before. `handler` still answers refusals.
   * @default false: it is answered
   */
  asError?: boolean | undefined
  /**
   * When requests are limited. A key from the body needs `'preHandler'`.
   * @default 'onRequest', before the body is read
   */
  hook?: (typeof HOOKS)[number] | undefined
  /**
   * Whether all routes are limited, and requests that no route answers. If false: the routes with
   * `config.rateLimit` only.
   * @default true
   */
  global?: boolean | undefined
  /**
   * Answers a refused request, in place of `statusCode` and `message`. The headers are set.
   * @default a 429 with a problem document, or 403 for a banned key
   */
  handler?: ((request: FastifyRequest, reply: FastifyReply, decision: D) => unknown) | undefined
}

/** The options of {@link rateLimit} for Fastify. */
export interface FastifyOptions
  extends RateLimitOptions<FastifyRequest, FastifyReply>,
    FastifyAnswers<Decision> {}

/** The options of {@link groupLimit} for Fastify. */
export interface FastifyGroupOptions
  extends GroupLimitOptions<FastifyRequest, FastifyReply>,
    FastifyAnswers<GroupDecision> {}

/** `config.rateLimit` of a route: rules of its own, `{}` for those of the plugin, or false for no limit. */
export interface FastifyRouteRules extends RouteRules {
  /** Routes with the same `groupId` count together, by the rules of the first one. */
  groupId?: string | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The decision about this request; undefined if it was not limited. */
    rateLimit: Decision | undefined
  }
  interface FastifyContextConfig {
    rateLimit?: FastifyRouteRules | false
  }
  interface FastifyInstance {
    /** Forgets what a key has used, and ends its ban. If the first limiter is a group: `{ account: 'alice' }`. */
    resetRateLimit(key: string | MemberKeys): Promise<void>
    /** What became of the requests of the first limiter of the app, by route and by rule. */
    rateLimitStats(): Promise<RateLimitStats>
    /** Returns the keys of the requests that were refused most by the first limiter of this app: see `Limiter.top`. */
    rateLimitTop(options: TopOptions): Promise<TopKey[]>
  }
}

const fastifyFramework: Omit<Framework<FastifyRequest, FastifyReply>, 'pathsOf'> = {
  requestOf: ({ raw }) => raw,
  identityOf: ({ raw }) => raw,
  keep(request, _, decision) {
    request.rateLimit = decision
  },
  kept: ({ rateLimit }) => rateLimit,
  set(reply, name, value) {
    reply.header(lowerCase(name), value)
  },
  get(reply, name) {
    const value = reply.getHeader(name)
    return value === undefined ? undefined : String(value)
  },
  hasGone: ({ raw }) => hasGone(raw),
  onEnd(_, reply, done) {
    onEnd(reply.raw, done)
  },
  connectionOf: (_, { raw }) => connectionOf(raw),
}

const lowered: Record<string, string> = {}

/**
 * The name in lower case. Fastify keeps headers by these names, and would make the string again for each
 * request.
 */
function lowerCase(name: string): string {
  lowered[name] ??= name.toLowerCase()
  return lowered[name]
}

/** The paths of a request are read as the instance does, and patterns also within its prefix. */
function frameworkOf(fastify: FastifyInstance): Framework<FastifyRequest, FastifyReply> {
  const isSemicolon = usesSemicolon(fastify as SemicolonConfig)
  const { prefix } = fastify
  const pathsOf = (request: FastifyRequest): Paths => {
    const paths = fastifyPathsOf(request, isSemicolon)
    return prefix === '' ? paths : pathsWithin(prefix, paths)
  }
  return { ...fastifyFramework, pathsOf }
}

/** Hands a refusal to the error handler of the app. */
const fail = (reply: FastifyReply, refusal: Refusal): void => void reply.send(new RateLimitError(refusal))

function send(reply: FastifyReply, { status, contentType, body }: Refusal): void {
  reply.code(status).header('content-type', contentType).send(body)
}

/**
 * Limits the requests of a Fastify app (5), by the client's address unless `key` says otherwise. The decision
 * is at `request.rateLimit`. It limits the routes of the instance that it is registered on, and requests that
 * no route answers. The limiters are closed with the app.
 * @param fastify the instance
 * @param options the rule (`limit` and `window` at least), or `rules`, a `limiter`, or `routes`
 * @param done called when the plugin is ready
 * @throws {MillraceError} the errors of `createLimiter`, and `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import Fastify from 'fastify'
 * import { rateLimit } from 'millrace/fastify'
 *
 * const app = Fastify()
 * app.register(rateLimit, { limit: 100, window: '1m' })
 * app.post('/login', { config: { rateLimit: { limit: 5, window: '15m' } } }, () => 'welcome')
 * ```
 */
const rateLimit: FastifyPluginCallback<FastifyOptions> = (fastify, options, done) =>
  register(fastify, options, undefined, done)

/**
 * Limits the requests of a Fastify app (5) by a group: a limiter for each of several keys, such as the account and the client's
 * address. It passes if all members admit it, else none is charged. A refusal's status, headers and problem document are
 * those of the member that refused. It limits the routes of the instance that it is
 * registered on: register it in a plugin of your own that has only the routes to limit. A key from the body needs
 * `hook: 'preHandler'`. `config.rateLimit` of a route does not matter, but for `false`.
 * @param fastify the instance
 * @param options `members`: limiters or rules by names of your choice, each with a key of the request
 * @param done called when the plugin is ready
 * @throws {MillraceError} the errors of `createLimiter` and of `group`, and `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import Fastify from 'fastify'
 * import { groupLimit } from 'millrace/fastify'
 *
 * const app = Fastify()
 * app.register(async (logins) => {
 *   logins.register(groupLimit, {
 *     hook: 'preHandler',
 *     members: {
 *       account: { limit: 5, window: '15m', key: (request) => request.body.account },
 *       address: { limit: 20, window: '15m' },
 *     },
 *   })
 *   logins.post('/login', () => 'welcome')
 * })
 * ```
 */
const groupLimit: FastifyPluginCallback<FastifyGroupOptions> = (fastify, options, done) =>
  register(fastify, options, BY_GROUP, done)

type AnyOptions = RequestOptions<FastifyRequest, FastifyReply, never> & FastifyAnswers<never>

function register(
  fastify: FastifyInstance,
  options: AnyOptions,
  judging: Judging | undefined,
  done: (error?: Error) => void,
): void {
  if (typeof done !== 'function')
    throw invalid('fastify', fastify, 'app.register(plugin, options): it is a plugin')
  try {
    install(fastify, options, judging)
    done()
  } catch (error) {
    done(error as Error) // Fastify does not catch what a plugin throws
  }
}

function install(fastify: FastifyInstance, options: AnyOptions, judging: Judging | undefined): void {
  const { handler, hook = 'onRequest', global = true, asError = false } = options
  if (!HOOKS.includes(hook)) throw invalid('hook', hook, HOOKS.map((name) => `'${name}'`).join(', '))
  if (typeof global !== 'boolean') throw invalid('global', global, 'a boolean')
  const policy = new Policy(options, frameworkOf(fastify), ['hook', 'global', 'asError'], judging)
  const { limits } = policy
  const groups = limits instanceof RouteLimits ? new RouteGroups(limits) : undefined
  if (!fastify.hasRequestDecorator('rateLimit')) fastify.decorateRequest('rateLimit', undefined)
  if (!fastify.hasDecorator('resetRateLimit')) {
    fastify.decorate('resetRateLimit', async (key: string | MemberKeys) => policy.reset(key))
    fastify.decorate('rateLimitStats', () => policy.stats())
    fastify.decorate('rateLimitTop', (options: TopOptions) => policy.top(options))
  }

  const finish = (step: Step, request: FastifyRequest, reply: FastifyReply, next: () => void): void => {
    if (step === undefined) next()
    else if (step !== GONE) void policy.answer(step, request, reply, handler, asError ? fail : send)
  }
  fastify.addHook('onRoute', ({ config, method, url }) => {
    const rules = config?.rateLimit
    if (rules) groups?.find(rules, `${[method].flat().join('|')} ${url}`, `config.rateLimit of ${url}`) // a wrong rule fails here, and not at a request
  })
  const limit = (request: FastifyRequest, reply: FastifyReply, next: () => void): void => {
    const rules = request.routeOptions.config?.rateLimit
    if (rules === false || (rules === undefined && !global)) {
      next()
      return
    }
    const own = rules && groups?.find(rules, request.routeOptions.url ?? request.url, 'config.rateLimit')
    const step = own === undefined ? policy.admit(request, reply) : policy.admitBy(own, request, reply)
    if (step === undefined) next()
    else if (step instanceof Promise) void step.then((later) => finish(later, request, reply, next))
    else finish(step, request, reply, next)
  }
  // The hooks have the same parameters, except preParsing, which is also given the body.
  if (hook === 'preParsing') fastify.addHook(hook, (request, reply, _, next) => limit(request, reply, next))
  else fastify.addHook(hook as 'onRequest', limit)
  fastify.addHook('onClose', () => policy.close())
  if (global) limitersOf(fastify).push({ prefix: fastify.prefix, limit })
}

/** What a limiter does with a request: the hook of its plugin. */
interface Installed {
  readonly prefix: string
  limit(request: FastifyRequest, reply: FastifyReply, next: () => void): void
}

/** The limiters of an app, in their order, by its server, which all instances of the app share. */
const installed = new WeakMap<object, Installed[]>()

function limitersOf({ server }: Pick<FastifyInstance, 'server'>): Installed[] {
  const limiters = installed.get(server) ?? []
  installed.set(server, limiters)
  return limiters
}

/**
 * Limits the requests that Fastify's router refuses itself, and runs no hook for: a path that can't be decoded
 * (`/%zz`), a parameter that is too long. For the option `frameworkErrors` of Fastify; without it these requests are not
 * counted. They count by the general rule, or by `routes`, of each limiter of the app without `global: false`. A limiter
 * that is registered under a prefix counts those below it.
 * @param error the error of Fastify
 * @param request the request
 * @param reply its reply
 * @param answer answers a request that is admitted, by its reply. Default: by the error, as Fastify does
 * @example
 * ```ts
 * import Fastify from 'fastify'
 * import { frameworkErrors, rateLimit } from 'millrace/fastify'
 *
 * const app = Fastify({ frameworkErrors })
 * app.register(rateLimit, { limit: 100, window: '1m' })
 * ```
 */
export function frameworkErrors(
  error: Error,
  // biome-ignore lint/suspicious/noExplicitAny: Fastify's types differ with the server and the schemas
  request: FastifyRequest<any, any, any, any, any>,
  // biome-ignore lint/suspicious/noExplicitAny: see request
  reply: FastifyReply<any, any, any, any, any, any, any>,
  answer: (reply: FastifyReply) => unknown = (admitted) => admitted.send(error),
): void {
  const own = request as unknown as FastifyRequest
  const ownReply = reply as unknown as FastifyReply
  const limiters = limitersOf(own.server).filter(({ prefix }) => isWithin(prefix, own.url))
  const next = (i: number): void => {
    if (i === limiters.length) answer(ownReply)
    else limiters[i]!.limit(own, ownReply, () => next(i + 1))
  }
  next(0)
}

// So that the hooks hold for the whole instance, and not for the plugin alone.
for (const [name, plugin] of Object.entries({ millrace: rateLimit, 'millrace-group': groupLimit }))
  Object.assign(plugin, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: name,
    [Symbol.for('plugin-meta')]: { name, fastify: '5.x' },
  })

export { groupLimit, rateLimit, rateLimit as default }
