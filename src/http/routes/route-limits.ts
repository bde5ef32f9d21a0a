import type { AsyncLimiter } from '../../api/async-limiter.js'
import type { Limiter } from '../../api/limiter.js'
import type { LimiterOptions } from '../../api/options.js'
import { hearsKeys } from '../../core/channels.js'
import { DecisionCounts } from '../../core/decision-counts.js'
import { invalid } from '../../core/errors.js'
import { checkNearLimit, nearShareOf } from '../../core/near-limit.js'
import { ENGINE_OPTIONS, refuseUnknown } from '../../core/option-names.js'
import { MAX_LIMIT } from '../../core/rule-algorithms.js'
import { RULE_OPTIONS } from '../../core/rule-options.js'
import { createLimiter } from '../../create/create.js'
import { isKeyString, type Key } from '../../memory/keys.js'
import type { IpKey } from '../addresses/ip-key.js'
import type { HttpRequest } from '../framework.js'
import type { HeaderAccess } from '../headers/header-access.js'
import { DEFAULT_STANDARD, RateLimitHeaders, type Standard } from '../headers/headers.js'
import type { AtOnce, Limit, Limits } from '../judging.js'
import { type CallLimits, HTTP_OPTIONS, type RouteRules } from '../options.js'
import type { PathReadings, Paths } from '../readings.js'
import { RouteCounts } from '../stats.js'
import { Routes, SEVERAL } from './routes.js'

export const RULES_OF_A_ROUTE: readonly string[] = [...RULE_OPTIONS, 'rules', 'limiter']
/** Without the options of the middleware itself. */
const RULES_OF_ALL = RULES_OF_A_ROUTE.filter((name) => name === 'limiter' || !HTTP_OPTIONS.includes(name))

/** The name of the rules of requests without a route of their own. */
const DEFAULT_ROUTE = 'default'
/** A route without a limit. */
const UNLIMITED = Symbol('not limited')
/** What a pattern stands for. */
type Route<Response> = RouteLimit<Response> | typeof UNLIMITED

/** What the limits of all routes have in common. */
interface Common<Response> {
  readonly engine: Readonly<Record<string, unknown>>
  readonly standard: Standard
  readonly access: HeaderAccess<Response>
  /** Whether the option `limit` is a function. */
  readonly hasOwnLimits: boolean
  /** Whether the key of an address may be a handle: nothing else needs its text. */
  readonly usesHandles: boolean
}

/** The limiter of a route, and its headers. */
export class RouteLimit<Response> implements Limit<Response> {
  readonly name: string
  readonly counts: RouteCounts
  readonly limiter: Limiter | AsyncLimiter
  readonly atOnce: AtOnce | undefined
  readonly headers: RateLimitHeaders<Response>
  readonly met = Symbol('millrace met')
  readonly takesOwnLimit: boolean
  readonly needsOwnLimit: boolean
  /** Whether the limiter was made from options. Then it is closed with them. */
  readonly #isMade: boolean
  /** The field of a socket that keeps the handle of its address; undefined if keys are not handles. */
  readonly #handle: symbol | undefined

  constructor(name: string, rules: RouteRules, common: Common<Response>) {
    this.name = name
    const { limiter, limit } = rules
    this.takesOwnLimit = common.hasOwnLimits && limit === undefined
    this.needsOwnLimit = this.takesOwnLimit && limiter === undefined && rules.rules === undefined
    this.#isMade = limiter === undefined
    this.limiter = limiter ?? limiterOf(rules, common.engine, this.needsOwnLimit)
    this.atOnce = 'checkNow' in this.limiter ? (this.limiter as unknown as AtOnce) : undefined
    this.counts = new RouteCounts(
      new DecisionCounts(checkNearLimit(common.engine.nearLimit) ?? nearShareOf(this.limiter)),
    )
    this.headers = new RateLimitHeaders(common.standard, this.limiter, common.access)
    this.#handle = common.usesHandles ? Symbol('millrace key') : undefined
  }

  /** The key by address. It is hashed once a connection if it depends on nothing else. */
  keyOf(ipKey: IpKey, request: HttpRequest): Key {
    const socket = request.socket as { [field: symbol]: Key | undefined } | undefined
    // A handle does not have the text of its key.
    if (hearsKeys() || this.#handle === undefined || !ipKey.isBySocket || socket === undefined)
      return ipKey(request)
    const kept = socket[this.#handle]
    if (kept !== undefined) return kept
    const key = this.limiter.handle(ipKey(request))
    socket[this.#handle] = key
    return key
  }

  checkOwnLimit(limit: CallLimits | undefined): { limit?: CallLimits | undefined } {
    if (limit !== undefined) return { limit }
    if (this.needsOwnLimit) throw invalid('limit(request)', limit, 'an integer of 1 or more')
    return {}
  }

  toldKey(key: Key): Key {
    return key
  }

  clear(key: string): void | Promise<void> {
    if (typeof key === 'string' && !isKeyString(key)) return // no request is limited by it
    return this.limiter.clear(key)
  }

  async close(): Promise<void> {
    if (this.#isMade) await this.limiter.close()
  }
}

/** The limiters of all routes, and the one of the others. */
export class RouteLimits<Response> implements Limits<Response> {
  readonly others: RouteLimit<Response> | undefined
  readonly #common: Common<Response>
  readonly #routes: Routes<Route<Response>> | undefined
  readonly #all: RouteLimit<Response>[] = []
  #longestWindowMs = 0

  /**
   * @param own the names of options that only this framework has
   * @throws MillraceError for an unknown option, and for rules that are missing or wrong
   */
  constructor(options: object, access: HeaderAccess<Response>, own: readonly string[]) {
    const given = options as Readonly<Record<string, unknown>>
    checkNames(given, [...RULE_OPTIONS, 'rules', ...ENGINE_OPTIONS, ...HTTP_OPTIONS, ...own])
    const { routes, limit, standard = DEFAULT_STANDARD, ban, delay, onLimited } = given
    this.#common = {
      engine: pick(given, ENGINE_OPTIONS),
      standard: standard as Standard,
      access,
      hasOwnLimits: typeof limit === 'function',
      usesHandles: ban === undefined && delay === undefined && onLimited === undefined,
    }
    const rules = pick(given, RULES_OF_ALL)
    if (typeof limit === 'function') delete rules.limit
    if (routes === undefined || limit !== undefined || Object.keys(rules).length > 0)
      this.others = this.add(DEFAULT_ROUTE, rules)
    if (routes !== undefined)
      this.#routes = new Routes(this.#limitsOf(routes), (limit) => limit === UNLIMITED)
  }

  /**
   * The rules for a request; undefined if it is not limited. Of a path that routers may read differently there may be
   * several, which all hold.
   */
  find(method: string | undefined, paths: Paths): RouteLimit<Response> | RouteLimit<Response>[] | undefined {
    if (typeof paths !== 'string') return this.#limitsFor(this.#routesOf(method, paths))
    const found = this.#routes!.findOnly(method, paths)
    if (found === SEVERAL) return this.#limitsFor(this.#routes!.findAll(method, paths))
    return found === UNLIMITED ? undefined : (found ?? this.others)
  }

  #limitsFor(routes: Iterable<Route<Response> | undefined>): RouteLimit<Response>[] {
    const found = new Map<unknown, RouteLimit<Response>>() // routes may share a limiter
    for (const route of routes) {
      const limit = route ?? this.others
      if (limit !== undefined && limit !== UNLIMITED) found.set(limit.limiter, limit)
    }
    return [...found.values()]
  }

  /** The routes of all readings; undefined for one without a route. */
  #routesOf(method: string | undefined, { served, mounted, originals }: PathReadings) {
    const find = (paths: readonly string[]) =>
      new Set(paths.flatMap((path) => [...this.#routes!.findAll(method, path)]))
    const found = find(served)
    const inMount = find(mounted)
    // A pattern is written either for the whole path or for that in the mount: the other need not match.
    if (mounted.length > 0 && !(found.has(undefined) && inMount.has(undefined))) {
      found.delete(undefined)
      inMount.delete(undefined)
    }
    // What was served before it was rewritten has no limit to lift.
    const before = [...find(originals)].filter((route) => route !== undefined && route !== UNLIMITED)
    return new Set([...before, ...inMount, ...found])
  }

  get hasRoutes(): boolean {
    return this.#routes !== undefined
  }

  /** Makes the limiter of a route. `name` is that of its counts, `option` names its rules in errors. */
  add(name: string, rules: RouteRules, option = 'options'): RouteLimit<Response> {
    checkNames(rules, RULES_OF_A_ROUTE, option)
    const limit = new RouteLimit(this.#nameLike(name), rules, this.#common)
    this.#all.push(limit)
    const windows = limit.limiter.rules.map(({ windowMs }) => windowMs)
    this.#longestWindowMs = Math.max(this.#longestWindowMs, ...windows)
    return limit
  }

  /** A name that no other route has. */
  #nameLike(name: string, number = 1): string {
    const own = number === 1 ? name : `${name} (${number})`
    return this.#all.some((limit) => limit.name === own) ? this.#nameLike(name, number + 1) : own
  }

  all(): readonly RouteLimit<Response>[] {
    return this.#all
  }

  get longestWindowMs(): number {
    return this.#longestWindowMs
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((limit) => limit.close()))
  }

  #limitsOf(routes: unknown): Record<string, Route<Response>> {
    if (typeof routes !== 'object' || routes === null || Array.isArray(routes)) {
      throw invalid('routes', routes, "an object such as { 'POST /login': { limit: 5, window: '15m' } }")
    }
    const { shared } = this.#common.engine
    if (shared !== undefined) {
      throw invalid(
        'shared',
        shared,
        'no value beside routes: a file holds the counts of one limiter. Give each route a limiter with a file of its own',
      )
    }
    const entries = Object.entries(routes).map(([pattern, rules]) => {
      if (rules === false) return [pattern, UNLIMITED] as const
      const option = `routes['${pattern}']`
      if (typeof rules !== 'object' || rules === null)
        throw invalid(option, rules, 'an object with rules, or false')
      return [pattern, this.add(pattern, rules, option)] as const
    })
    return Object.fromEntries(entries)
  }
}

/** The limiter of a route's rules. @throws MillraceError */
export function limiterOf(
  rules: RouteRules,
  engine: Readonly<Record<string, unknown>>,
  needsOwnLimit = false,
): Limiter | AsyncLimiter {
  const limit = needsOwnLimit ? { limit: MAX_LIMIT } : {}
  return createLimiter({ ...engine, ...rules, ...limit } as unknown as LimiterOptions)
}

export function pick(
  options: Readonly<Record<string, unknown>>,
  names: readonly string[],
): Record<string, unknown> {
  const present = names.filter((name) => options[name] !== undefined)
  return Object.fromEntries(present.map((name) => [name, options[name]]))
}

export function checkNames(options: object, known: readonly string[], option = 'options'): void {
  refuseUnknown(options, known, (name, expected) => invalid(option, name, expected))
}
