import { invalid } from '../../core/errors.js'

/** The rules of routes: which pattern a request matches. */

/** One route: a pattern, and what holds for the requests that match it. */
interface Route<T> {
  readonly method: string | undefined
  /** Whether the pattern matches a path in the spelling that is compared: see {@link Spelling}. */
  matches(path: string, spelling: Spelling): boolean
  /** Whether only the pattern's own spelling of a path matches. */
  readonly isExact: boolean
  /** The number of characters before the first parameter or `*`. */
  readonly fixed: number
  readonly value: T
}

/**
 * What a router disregards in a path, as bits: letter case, doubled slashes, and a slash at the end. Routers differ,
 * and most have an option for each.
 */
type Spelling = number
const ANY_CASE = 1
const DOUBLED_SLASHES = 2
const SLASH_AT_END = 4
const LENIENT: Spelling = 7
/** A router that disregards nothing comes first. */
const SPELLINGS: readonly Spelling[] = [0, 1, 2, 3, 4, 5, 6, LENIENT]

/** Found in place of a route: what routers find depends on what they disregard. */
export const SEVERAL = Symbol('several routes')

const PATTERN = /^(?:([A-Za-z]+) +)?(\/\S*|\*)$/

/**
 * Finds the route of a request. Paths are compared as a lenient router would: without regard to case, to
 * percent-encoding, to repeated slashes and to a slash at the end. So another spelling of a path does not get
 * around its limit. A route without a limit is found by its own spelling alone: another one may be another route.
 *
 * Nor may a spelling get a laxer limit than its handler has. `/render/statu%73` is `/render/status` for some routers, and
 * another path for others, whose handler is that of `/render/*`. So are `/render/STATUS`, `/render//status` and
 * `/render/status/`. Such a path has several readings, and the limits of all their routes hold.
 */
export class Routes<T> {
  readonly #routes: readonly Route<T>[]

  /** @param isExact whether a route holds only for the spelling of its pattern, as one without a limit must */
  constructor(routes: Readonly<Record<string, T>>, isExact: (value: T) => boolean = () => false) {
    this.#routes = Object.entries(routes)
      .map(([pattern, value]) => routeOf(pattern, value, isExact(value)))
      .sort((a, b) => b.fixed - a.fixed || Number(a.method === undefined) - Number(b.method === undefined))
  }

  /** The route of a path in all its readings; `SEVERAL` if {@link findAll} must tell. */
  findOnly(method: string | undefined, url: string): T | undefined | typeof SEVERAL {
    const own = ownPathOf(url)
    if (own.includes('%')) return SEVERAL
    const route = this.#match(method, own, plainPathOf(own))
    // The strictest router finds no route that a more lenient one does not. What both find first, all find.
    return route === undefined || route.matches(own, 0) ? route?.value : SEVERAL
  }

  /** The route that a lenient router finds. */
  find(method: string | undefined, url: string): T | undefined {
    const own = ownPathOf(url)
    return this.#match(method, own, plainPathOf(own))?.value
  }

  /** The routes of a path, one for each reading; undefined for a reading without a route. The last is that of {@link find}. */
  findAll(method: string | undefined, url: string): ReadonlySet<T | undefined> {
    const own = ownPathOf(url)
    const found = new Set<T | undefined>()
    for (const path of new Set(READINGS.map((encoded) => decodedOnce(own, encoded)))) {
      const lenient = spelled(path, LENIENT)
      const routes = this.#routes.filter((route) => isFor(route, method, own, lenient, LENIENT))
      for (const spelling of SPELLINGS) {
        const spelt = spelled(path, spelling)
        found.add(routes.find((route) => isFor(route, method, own, spelt, spelling))?.value)
      }
    }
    const last = this.find(method, url)
    found.delete(last)
    return found.add(last)
  }

  #match(method: string | undefined, own: string, path: string): Route<T> | undefined {
    for (const route of this.#routes) if (isFor(route, method, own, path, LENIENT)) return route
    return undefined
  }
}

/** @param own the path as its client has spelt it, the only one that an exact route matches */
function isFor<T>(
  route: Route<T>,
  method: string | undefined,
  own: string,
  path: string,
  spelling: Spelling,
): boolean {
  if (route.method !== undefined && !isMethod(route.method, method)) return false
  return route.matches(route.isExact ? own : path, spelling)
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
  const fixed = parts[0]!.length
  const texts = parts.map((part, i) => (i % 2 === 0 && !isExact ? decoded(part) : part))
  const paths: RegExp[] = []
  const matches = (own: string, spelling: Spelling): boolean => {
    const at = isExact ? 0 : spelling
    paths[at] ??= regexOf(texts, at)
    return paths[at].test(own)
  }
  return { method: method?.toUpperCase(), matches, isExact, fixed, value }
}

/** The expression of a pattern, whose parts at odd places are parameters and `*`. */
function regexOf(parts: readonly string[], spelling: Spelling): RegExp {
  const texts = parts.map((part, i) =>
    i % 2 === 0 ? escaped(spelled(part, spelling & ~SLASH_AT_END)) : part === '*' ? '.*' : '[^/]+',
  )
  // `/api/*` also matches `/api`.
  const source = texts.join('').replace(/\/\.\*$/, '(?:/.*)?')
  const whole = (spelling & SLASH_AT_END) === 0 ? source : trimmed(source)
  return new RegExp(`^${whole}$`, 's')
}

/** The path of a request's target, as the client has spelt it. */
function ownPathOf(url: string): string {
  const end = url.search(/[?#]/)
  const path = end < 0 ? url : url.slice(0, end)
  return path.startsWith('/') ? path : pathOfAbsolute(path)
}

/** A path in the one spelling that a lenient router compares with patterns. */
export function plainPathOf(own: string): string {
  return spelled(own.includes('%') ? decoded(own) : own, LENIENT)
}

/** A path without what a router disregards. */
function spelled(path: string, spelling: Spelling): string {
  const single = (spelling & DOUBLED_SLASHES) === 0 ? path : path.replace(/\/{2,}/g, '/')
  const cased = (spelling & ANY_CASE) === 0 ? single : single.toLowerCase()
  return (spelling & SLASH_AT_END) === 0 ? cased : trimmed(cased)
}

const trimmed = (path: string): string => (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path)

/** The path of `http://host/path`, as a proxy may send it. Nothing else without a slash is `/`: not `*`. */
const pathOfAbsolute = (url: string): string => {
  const found = /^[a-z][a-z0-9+.-]*:\/\/[^/]*(\/.*)?$/is.exec(url)
  return found === null ? `/${url}` : (found[1] ?? '/')
}

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
