// Where counts and policies live, as an option says it.
import { OptionError } from '../options/option.js'

/** Where counts live. */
export type CountsPlace =
  | { readonly kind: 'memory' }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'redis'; readonly urls: readonly string[] }
  | { readonly kind: 'memcached'; readonly servers: readonly string[] }

const PLACES =
  'memory, file:PATH, redis://HOST:PORT/DATABASE, redis+sentinel://HOST:PORT/NAME or memcached://HOST:PORT'

/** A URL without its password, for messages. */
export const shownUrl = (url: string): string => url.replace(/^([^:]+:\/\/[^/?]*?:)[^/?]*@/, '$1***@')

/** Whether a URL has a password. */
export const hasPassword = (url: string): boolean => shownUrl(url) !== url

/** @throws OptionError for another place */
export function countsPlace(counts: string, option = 'counts'): CountsPlace {
  if (counts === 'memory') return { kind: 'memory' }
  if (/^file:./.test(counts)) return { kind: 'file', path: pathIn(counts) }
  const urls = redisUrls(counts)
  if (urls.length > 0) return { kind: 'redis', urls }
  const servers = /^memcached:\/\/([^/]+)\/?$/.exec(counts)?.[1]
  if (servers !== undefined) return { kind: 'memcached', servers: servers.split(',') }
  throw new OptionError(`${option}: expected ${PLACES}, got ${JSON.stringify(shownUrl(counts))}`)
}

/** The addresses of a list of servers of Redis. @throws OptionError for another place, and for a Sentinel */
export function redisUrlsOf(counts: string, option: string): readonly string[] {
  const place = countsPlace(counts, option)
  if (place.kind === 'redis' && sentinelIn(counts) === undefined) return place.urls
  throw new OptionError(
    `${option}: expected redis://HOST:PORT,HOST:PORT, got ${JSON.stringify(shownUrl(counts))}`,
  )
}

/** A Sentinel's address, or that of each server: the hosts have commas between them. Empty: another place. */
function redisUrls(counts: string): readonly string[] {
  if (sentinelIn(counts) !== undefined) return [counts]
  const [, before, hosts, after] = /^(rediss?:\/\/(?:[^@/]*@)?)([^/?#]+)(.*)$/.exec(counts) ?? []
  const urls = hosts?.split(',').map((host) => `${before}${host}${after}`) ?? []
  const isEach = urls.every((url) => URL.canParse(url) && new URL(url).hostname !== '')
  return isEach && new Set(urls).size === urls.length ? urls : []
}

/** Where Sentinels are, and what they watch. */
export interface SentinelAddress {
  readonly sentinels: readonly { readonly host: string; readonly port: number }[]
  /** The name of the primary. */
  readonly name: string
  readonly db: number
  readonly isSecure: boolean
  readonly username?: string
  readonly password?: string
}

const SENTINEL_PORT = 26_379

/** `redis+sentinel://HOST:PORT,HOST:PORT/NAME/DATABASE`; undefined for another address. */
export function sentinelIn(url: string): SentinelAddress | undefined {
  const [, secure, user, hosts, name, db = '0'] =
    /^redis(s?)\+sentinel:\/\/(?:([^@/]*)@)?([^/]+)\/([^/]+)(?:\/(\d+))?$/.exec(url) ?? []
  if (hosts === undefined) return undefined
  const urls = hosts.split(',').map((host) => `redis://${host}`)
  if (!urls.every((host) => URL.canParse(host))) return undefined
  const sentinels = urls.map((host) => {
    const { hostname, port } = new URL(host)
    return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? SENTINEL_PORT : Number(port) }
  })
  const [username = '', password = ''] = user?.split(':').map(decodeURIComponent) ?? []
  return {
    ...{ sentinels, name: decodeURIComponent(name!), db: Number(db), isSecure: secure === 's' },
    ...(username !== '' && { username }),
    ...(password !== '' && { password }),
  }
}

/** A path after a scheme, with no slashes or three before it. */
export const pathIn = (url: string): string => url.slice(url.indexOf(':') + 1).replace(/^\/\/\//, '/')
