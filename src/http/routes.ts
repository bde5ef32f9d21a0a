/** The rules of routes: which pattern a request matches. */
import { invalid } from './options.js'

/** One route: a pattern, and what holds for the requests that match it. */
interface Route<T> {
  readonly method: string | undefined
  readonly path: RegExp
  /** Whether only the pattern's own spelling of a path matches. */
  readonly isExact: boolean
  /** The number of characters before the first parameter or `*`. */
  readonly fixed: number
  readonly value: T
}

const PATTERN = /^(?:([A-Za-z]+) +)?(\/\S*|\*)$/

/**
 * Finds the route of a request. Paths are compared as a lenient router would: without regard to case, to
 * percent-encoding, to repeated slashes and to a slash at the end. So another spelling of a path does not get
 * around its limit. A route without a limit is found by its own spelling alone: another one may be another route.
 *
 * Nor may a spelling get a laxer limit than its handler has. `/render/statu%73` is `/render/status` for some routers, and
 * another path for others, whose handler is that of `/render/*`. Such a path has several readings, and the limits of all
 * their routes hold.
 */
export class Routes<T> {
  readonly #routes: readonly Route<T>[]

  /** @param isExact whether a route holds only for the spelling of its pattern, as one without a limit must */
  constructor(routes: Readonly<Record<string, T>>, isExact: (value: T) => boolean = () => false) {
    this.#routes = Object.entries(routes)
      .map(([pattern, value]) => routeOf(pattern, value, isExact(value)))
      .sort((a, b) => b.fixed - a.fixed || Number(a.method === undefined) - Number(b.method === undefined))
  }

  find(method: string | undefined, url: string): T | undefined {
    const own = ownPathOf(url)
    return this.#match(method, own, plainPathOf(own))
  }

  /**
   * The routes of a path that {@link hasReadings}, one for each reading; undefined for a reading without a route. The
   * last one is that of {@link find}.
   */
  findAll(method: string | undefined, url: string): ReadonlySet<T | undefined> {
    const own = ownPathOf(url)
    const paths = new Set(READINGS.map((encoded) => trimmed(plain(decodedOnce(own, encoded)))))
    const routes = [...paths].map((path) => this.#match(method, own, path))
    const last = this.find(method, url)
    return new Set([...routes.filter((route) => route !== last), last])
  }

  #match(method: string | undefined, own: string, path: string): T | undefined {
    for (const route of this.#routes) {
      if (route.method !== undefined && !isMethod(route.method, method)) continue
      if (route.path.test(route.isExact ? own : path)) return route.value
    }
    return undefined
  }
}

/** A server answers HEAD by the handler of GET. */
const isMethod = (wanted: string, method: string | undefined): boolean =>
  wanted === method || (wanted === 'GET' && method === 'HEAD')

function routeOf<T>(pattern: string, value: T, isExact: boolean): Route<T> {
  const [, method, path] = PATTERN.exec(pattern) ?? []
  if (path === undefined) {
    throw invalid('routes', pattern, "a path, or a method and a path, such as 'POST /login' or '/api/*'")
  }
  const parts = path.split(/(:[A-Za-z0-9_]+|\*)/)
  const last = parts.indexOf('*')
  if (last >= 0 && parts.slice(last + 1).some((part) => part !== '')) {
    throw invalid('routes', pattern, 'a path with * only at its end')
  }
  // Two of them would take quadratic time: `[^/]+-[^/]+`.
  if (parts.some((part, i) => i % 2 === 0 && i > 0 && (parts[i + 1] ?? '*') !== '*' && !part.includes('/'))) {
    throw invalid(
      'routes',
      pattern,
      "a path with one parameter at most in each part, such as '/flights/:cities'",
    )
  }
  const text = parts.map((part, i) =>
    i % 2 === 0 ? escaped(isExact ? part : plain(decoded(part))) : part === '*' ? '.*' : '[^/]+',
  )
  // `/api/*` also matches `/api`.
  const source = text.join('').replace(/\/\.\*$/, '(?:/.*)?')
  const whole = isExact ? source : trimmed(source)
  const fixed = parts[0]!.length
  return { method: method?.toUpperCase(), path: new RegExp(`^${whole}$`, 's'), isExact, fixed, value }
}

/** Whether routers may find different routes for a path, because some decode it and others don't. */
export const hasReadings = (url: string): boolean => url.includes('%') && ownPathOf(url).includes('%')

/** The path of a request's target, as the client has spelt it. */
function ownPathOf(url: string): string {
  const end = url.search(/[?#]/)
  const path = end < 0 ? url : url.slice(0, end)
  return path.startsWith('/') ? path : pathOfAbsolute(path)
}

/** A path in the one spelling that patterns are compared with. */
function plainPathOf(own: string): string {
  return trimmed(plain(own.includes('%') ? decoded(own) : own))
}

const trimmed = (path: string): string => (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path)

/** The path of `http://host/path`, as a proxy may send it. */
const pathOfAbsolute = (url: string): string => /^[a-z][a-z0-9+.-]*:\/\/[^/]*(\/.*)?$/is.exec(url)?.[1] ?? '/'

const plain = (path: string): string => path.replace(/\/{2,}/g, '/').toLowerCase()

/** Percent-encoded UTF-8 of more than one byte. */
const LONGER =
  /%(?:c[2-9a-f]|d[\da-f])(?:%[89ab][\da-f])|%(?:e0%[ab]|e[1-9abcef]%[89ab]|ed%[89])[\da-f]%[89ab][\da-f]|%(?:f0%[9ab]|f[1-3]%[89ab]|f4%8)[\da-f](?:%[89ab][\da-f]){2}/

/** Sequences of percent-encoded UTF-8, with those of one byte that a pattern matches. */
const encodedWith = (oneByte: RegExp): RegExp => new RegExp(`(?:${oneByte.source}|${LONGER.source})+`, 'gi')

/** `%2F` is none of them: it separates no parts of a path, and a parameter may contain it. */
const ENCODED = encodedWith(/%(?!2f)[0-7][\da-f]/)

/** What different routers decode once, before they compare a path. */
const READINGS: readonly RegExp[] = [
  // Express and Koa: nothing. A character that no path can contain is the same either way.
  encodedWith(/%(?:[01][\da-f]|20|23|3f|7f)/),
  // Fastify and Hono: all but `%` and what separates parts of a URL, as `decodeURI`.
  encodedWith(/%(?!2[4-6bcf]|3[abd]|40)[0-7][\da-f]/),
  // An app that reads paths by `decodeURIComponent`.
  ENCODED,
]

/** A percent sign that is encoded, however often: `%25`, `%2525`. */
const ENCODED_PERCENT = /%(?:25)+/g

/**
 * Decodes what can be decoded: a client can send anything, and an error for each sequence would take long.
 *
 * What is encoded twice is decoded twice, in patterns and in paths: a router that decodes a path before it
 * compares, such as Fastify's, serves its route `/caf%C3%A9` to requests for `/caf%25C3%25A9`.
 */
function decoded(path: string): string {
  const once = decodedOnce(path.replace(ENCODED_PERCENT, '%'), ENCODED)
  return once.includes('%') ? decodedOnce(once.replace(ENCODED_PERCENT, '%'), ENCODED) : once
}

const decodedOnce = (path: string, encoded: RegExp): string => path.replace(encoded, decodeURIComponent)

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
