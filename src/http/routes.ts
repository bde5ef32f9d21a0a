/** The rules of routes: which pattern a request matches. */
import { invalid } from './options.js'

/** One route: a pattern, and what holds for the requests that match it. */
interface Route<T> {
  readonly method: string | undefined
  readonly path: RegExp
  /** The number of characters before the first parameter or `*`. */
  readonly fixed: number
  readonly value: T
}

const PATTERN = /^(?:([A-Za-z]+) +)?(\/\S*|\*)$/

/**
 * Finds the route of a request. Paths are compared as a lenient router would: without regard to case, to
 * percent-encoding, to repeated slashes and to a slash at the end. So another spelling of a path does not get
 * around its limit.
 */
export class Routes<T> {
  readonly #routes: readonly Route<T>[]

  constructor(routes: Readonly<Record<string, T>>) {
    this.#routes = Object.entries(routes)
      .map(([pattern, value]) => routeOf(pattern, value))
      .sort((a, b) => b.fixed - a.fixed || Number(a.method === undefined) - Number(b.method === undefined))
  }

  find(method: string | undefined, url: string): T | undefined {
    const path = pathOf(url)
    for (const route of this.#routes) {
      if (route.method !== undefined && !isMethod(route.method, method)) continue
      if (route.path.test(path)) return route.value
    }
    return undefined
  }
}

/** A server answers HEAD by the handler of GET. */
const isMethod = (wanted: string, method: string | undefined): boolean =>
  wanted === method || (wanted === 'GET' && method === 'HEAD')

function routeOf<T>(pattern: string, value: T): Route<T> {
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
    i % 2 === 0 ? escaped(plain(decoded(part))) : part === '*' ? '.*' : '[^/]+',
  )
  // `/api/*` also matches `/api`.
  const source = text.join('').replace(/\/\.\*$/, '(?:/.*)?')
  const trimmed = source.length > 1 && source.endsWith('/') ? source.slice(0, -1) : source
  const fixed = parts[0]!.length
  return { method: method?.toUpperCase(), path: new RegExp(`^${trimmed}$`, 's'), fixed, value }
}

/** The path of a request's target, in the one spelling that patterns are compared with. */
function pathOf(url: string): string {
  const end = url.search(/[?#]/)
  let path = end < 0 ? url : url.slice(0, end)
  if (!path.startsWith('/')) path = pathOfAbsolute(path)
  if (path.includes('%')) path = decoded(path)
  path = plain(path)
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}

/** The path of `http://host/path`, as a proxy may send it. */
const pathOfAbsolute = (url: string): string => /^[a-z][a-z0-9+.-]*:\/\/[^/]*(\/.*)?$/is.exec(url)?.[1] ?? '/'

const plain = (path: string): string => path.replace(/\/{2,}/g, '/').toLowerCase()

/**
 * Decodes each sequence that can be decoded: a client can send any. `%2F` stays: it separates no parts of a
 * path, and a parameter may contain it.
 */
const decoded = (path: string): string =>
  path.replace(/(?:%(?!2f)[0-9a-f]{2})+/gi, (bytes) => {
    try {
      return decodeURIComponent(bytes)
    } catch {
      return bytes // no UTF-8: no route is spelt so
    }
  })

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
