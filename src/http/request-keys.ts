import { invalid, MillraceError } from '../core/errors.js'
import { isKeyString, type Key, KeyHandle } from '../memory/keys.js'
import { type IpKey, type IpKeyOptions, ipKey, isIpKey } from './addresses/ip-key.js'
import { within } from './caller-promise.js'
import type { Framework, HttpRequest } from './framework.js'
import type { AnyKey, Keys, Limit } from './judging.js'
import type { Awaitable, RateLimitOptions } from './options.js'

/** The key of all requests that have neither a key nor an address. */
const NO_KEY = 'no key'

type Options<Request> = Pick<RateLimitOptions<Request, never>, keyof AddressOptions | 'key'>
/** The options of `ipKey` that each `rateLimit` has. */
type AddressOptions = Pick<IpKeyOptions, 'trustProxy' | 'ipv6Subnet' | 'nat64Prefixes'>

/** Finds the keys of limiters. */
export class RequestKeys<Request> implements Keys<Request> {
  readonly #framework: Framework<Request, never>
  readonly #address: IpKey
  /** The default key; undefined for a key function of the user. */
  readonly #ipKey: IpKey | undefined
  readonly #own: (request: Request) => Awaitable<string>
  readonly #option: string

  /**
   * @param option names the key function in errors
   * @throws MillraceError for an option that is wrong
   */
  constructor(options: Options<Request>, framework: Framework<Request, never>, option = 'key') {
    const { trustProxy, ipv6Subnet, nat64Prefixes, key } = options
    const byAddress = { trustProxy, ipv6Subnet, nat64Prefixes }
    this.#framework = framework
    this.#ipKey = key === undefined ? ipKey(byAddress) : isIpKey(key) ? key : undefined
    this.#address = this.#ipKey ?? ipKey(byAddress)
    if (this.#ipKey !== undefined && key !== undefined) checkNoAddressOptions(byAddress)
    this.#own = key as (request: Request) => Awaitable<string>
    this.#option = option
  }

  /** The key of a request. By the connection's address it is a handle, which is hashed once a connection. */
  of(request: Request, limit: Limit<never>, timeoutMs: number): Awaitable<Key> {
    const own = this.#ipKey
    if (own === undefined) return within(timeoutMs, this.#own(request), `${this.#option}(request)`)
    return limit.keyOf(own, this.#framework.requestOf(request))
  }

  /** The whole address of a request's client. */
  addressOf(raw: HttpRequest): string {
    return this.#address.addressOf(raw)
  }

  failureOf(key: AnyKey): MillraceError | undefined {
    if (typeof key === 'string' || KeyHandle.is(key)) return undefined
    return new MillraceError('ERR_MILLRACE_INVALID_KEY', this.#option, key, 'a string')
  }

  /** The key itself if a limiter accepts it, else that of the address. */
  usable(key: Key, request: Request): Key {
    if (KeyHandle.is(key) || isKeyString(key)) return key
    try {
      return this.#address(this.#framework.requestOf(request))
    } catch (error) {
      if (isNoAddress(error) && !this.#framework.hasGone(request)) return NO_KEY
      throw error
    }
  }
}

export const isNoAddress = (error: unknown): boolean =>
  error instanceof MillraceError && error.code === 'ERR_MILLRACE_NO_ADDRESS'

/** The options of `ipKey` stand in one place only. */
function checkNoAddressOptions(options: AddressOptions): void {
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined) throw invalid(name, value, 'no value beside key: ipKey(...), which has its own')
  }
}
