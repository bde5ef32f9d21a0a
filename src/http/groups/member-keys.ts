import type { GroupKeys } from '../../api/limiter-group.js'
import type { MillraceError } from '../../core/errors.js'
import type { Key } from '../../memory/keys.js'
import type { Framework, HttpRequest } from '../framework.js'
import type { AnyKey, Keys, Limit } from '../judging.js'
import type { RateLimitOptions } from '../options.js'
import { RequestKeys } from '../request-keys.js'
import { membersOf } from './options.js'

/** Finds the keys of a group: that of each member. */
export class MemberKeys<Request> implements Keys<Request> {
  readonly #members: readonly (readonly [name: string, keys: RequestKeys<Request>])[]
  readonly #address: RequestKeys<Request>

  /** @throws MillraceError for an option that is wrong */
  constructor(options: object, framework: Framework<Request, never>) {
    const { trustProxy, ipv6Subnet, nat64Prefixes, members } = options as RateLimitOptions<Request, never> & {
      readonly members: unknown
    }
    const byAddress = {
      ...(trustProxy !== undefined && { trustProxy }),
      ...(ipv6Subnet !== undefined && { ipv6Subnet }),
      ...(nat64Prefixes !== undefined && { nat64Prefixes }),
    }
    this.#address = new RequestKeys<Request>(byAddress, framework)
    this.#members = membersOf(members).map(([name, { key }]) => {
      const own = { ...byAddress, ...(key && { key }) }
      return [name, new RequestKeys<Request>(own as never, framework, `members.${name}.key`)]
    })
  }

  of(request: Request, limit: Limit<never>, timeoutMs: number): GroupKeys | Promise<GroupKeys> {
    const found = this.#members.map(([, keys]) => keys.of(request, limit, timeoutMs))
    return found.some((key) => key instanceof Promise)
      ? Promise.all(found).then((keys) => this.#byName(keys))
      : this.#byName(found as Key[])
  }

  addressOf(raw: HttpRequest): string {
    return this.#address.addressOf(raw)
  }

  failureOf(keys: AnyKey): MillraceError | undefined {
    for (const [name, own] of this.#members) {
      const failure = own.failureOf((keys as GroupKeys)[name]!)
      if (failure !== undefined) return failure
    }
    return undefined
  }

  usable(keys: AnyKey, request: Request): GroupKeys {
    return this.#byName(this.#members.map(([name, own]) => own.usable((keys as GroupKeys)[name]!, request)))
  }

  #byName(keys: readonly Key[]): GroupKeys {
    return Object.fromEntries(this.#members.map(([name], i) => [name, keys[i]!]))
  }
}
