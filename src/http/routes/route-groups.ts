import { invalid } from '../../core/errors.js'
import type { RouteRules } from '../options.js'
import type { RouteLimit, RouteLimits } from './route-limits.js'

/** The rules that routes declare themselves, such as `config.rateLimit` of a Fastify route. */
export class RouteGroups<Response> {
  readonly #limits: RouteLimits<Response>
  readonly #byRules = new WeakMap<object, RouteLimit<Response> | undefined>()
  readonly #byId = new Map<string, RouteLimit<Response>>()

  constructor(limits: RouteLimits<Response>) {
    this.#limits = limits
  }

  /**
   * The limiter of such rules; undefined if they have none of their own: `{}`. It is made at the first call.
   * @param name names the rules in counts
   * @param option names them in errors
   * @throws MillraceError for wrong rules
   */
  find(
    rules: RouteRules & { groupId?: string | undefined },
    name: string,
    option: string,
  ): RouteLimit<Response> | undefined {
    if (this.#byRules.has(rules)) return this.#byRules.get(rules)
    const { groupId, ...own } = rules
    if (groupId !== undefined && (typeof groupId !== 'string' || groupId === '')) {
      throw invalid(`${option}.groupId`, groupId, 'a string of 1 or more characters')
    }
    const known = groupId === undefined ? undefined : this.#byId.get(groupId)
    const limit =
      known ?? (Object.keys(own).length === 0 ? undefined : this.#limits.add(groupId ?? name, own, option))
    if (groupId !== undefined && limit !== undefined) this.#byId.set(groupId, limit)
    this.#byRules.set(rules, limit)
    return limit
  }
}
