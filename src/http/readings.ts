/**
 * The readings of a request's path. Most requests have one. Middleware may have cut the part off that a limiter is
 * mounted at, or written another path in its place, and routers in two versions may read a target differently.
 */
import { pathsByFindMyWay, type Targets } from './routes/request-path.js'
import { plainPathOf } from './routes/routes.js'

/** The paths of a request: one, or several readings. Each may have a query. */
export type Paths = string | PathReadings

export interface PathReadings {
  /** What the router that follows may read: the rules of each hold. */
  readonly served: Targets
  /** These paths with the part that the limiter is mounted at, or without it. A pattern may be written either way. */
  readonly mounted: readonly string[]
  /** What the client asked for, before middleware has written another path in its place. */
  readonly originals: readonly string[]
}

export const pathsOf = (served: Targets): Paths =>
  served.length === 1 ? served[0] : { served, mounted: [], originals: [] }

/**
 * The paths of a request whose `url` middleware may have changed.
 * @param original the target before
 * @param base what the limiter is mounted at; undefined if the framework does not tell
 */
export function pathsAfter(
  url: string,
  original: string,
  read: (target: string) => Targets,
  base?: string,
): Paths {
  const served = read(url)
  if (url === original) return pathsOf(served)
  const originals = read(original)
  const whole = served.map((path) => (base ?? '') + path)
  const isCut = originals.every((path) => whole.some((end) => isEndOf(path, end, base !== undefined)))
  if (isCut) return { served, mounted: originals, originals: [] }
  return { served, mounted: base ? whole : [], originals }
}

/** Whether a path ends in another one, or is the same. The root of what is mounted at `/api` has the path `/`. */
function isEndOf(path: string, end: string, isSame: boolean): boolean {
  const [long, short] = [withoutQuery(path), withoutQuery(end)]
  return [long, `${long}/`].some((each) => (isSame ? each === short : each.endsWith(short)))
}

/** What stands before the query. */
export const withoutQuery = (path: string): string => /^[^?#]*/.exec(path)![0]

/** The request of Fastify, or the one of Node.js that middleware of Nest is handed. */
interface FastifyRequestLike {
  readonly url?: string | undefined
  readonly originalUrl?: string | undefined
  readonly routeOptions?: { readonly url?: string | undefined }
}

/** The paths of a request to Fastify. For an odd target, also the route that the router has found, if it is a path. */
export function fastifyPathsOf(request: FastifyRequestLike, usesSemicolon: boolean): Paths {
  const { url = '/', originalUrl = url } = request
  const read = (target: string): Targets => {
    const targets = pathsByFindMyWay(target, usesSemicolon)
    if (targets.length === 1) return targets
    const route = request.routeOptions?.url
    return route === undefined || /[:*(]/.test(route) ? targets : [...targets, route]
  }
  return pathsAfter(url, originalUrl, read)
}

/**
 * The same paths for a limiter that is mounted at a prefix, such as `/api/:version`.
 * @param root the path in the mount for the prefix with a slash: another spelling where the router serves it otherwise
 */
export function pathsWithin(prefix: string, paths: Paths, root: '/' | '//' = '/'): Paths {
  const { served, mounted, originals } =
    typeof paths === 'string' ? { served: [paths] as const, mounted: [], originals: [] } : paths
  const inner = served.flatMap((path) => {
    const rest = pathWithin(prefix, path)
    return rest === '/' && path.endsWith('/') ? root : (rest ?? [])
  })
  return inner.length === 0 ? paths : { served, mounted: [...mounted, ...inner], originals }
}

/** Whether a path begins with a prefix. */
export const isWithin = (prefix: string, path: string): boolean => pathWithin(prefix, path) !== undefined

/** The rest of a path after a prefix, whose parameters match any part; undefined if it begins otherwise. */
function pathWithin(prefix: string, path: string): string | undefined {
  let at = 0
  for (const part of prefix.split('/')) {
    if (part === '') continue
    const [found, own] = /^\/+([^/?#]*)/.exec(path.slice(at)) ?? []
    if (found === undefined) return undefined
    if (!/[:*({]/.test(part) && plainPathOf(own!) !== plainPathOf(part)) return undefined
    at += found.length
  }
  const rest = path.slice(at)
  return rest.startsWith('/') ? rest : `/${rest}`
}
