// Where counts and policies live, as an option says it.
import { OptionError } from '../options/option.js'

/** Where counts live. */
export type CountsPlace =
  | { readonly kind: 'memory' }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'redis'; readonly url: string }
  | { readonly kind: 'memcached'; readonly servers: readonly string[] }

const PLACES = 'memory, file:PATH, redis://HOST:PORT/DATABASE or memcached://HOST:PORT'

/** A URL without its password, for messages. */
export const shownUrl = (url: string): string => url.replace(/^([^:]+:\/\/[^/?]*?:)[^/?]*@/, '$1***@')

/** Whether a URL has a password. */
export const hasPassword = (url: string): boolean => shownUrl(url) !== url

/** @throws OptionError for another place */
export function countsPlace(counts: string): CountsPlace {
  if (counts === 'memory') return { kind: 'memory' }
  if (/^file:./.test(counts)) return { kind: 'file', path: pathIn(counts) }
  if (/^rediss?:\/\/./.test(counts) && URL.canParse(counts)) return { kind: 'redis', url: counts }
  const servers = /^memcached:\/\/([^/]+)\/?$/.exec(counts)?.[1]
  if (servers !== undefined) return { kind: 'memcached', servers: servers.split(',') }
  throw new OptionError(`counts: expected ${PLACES}, got ${JSON.stringify(shownUrl(counts))}`)
}

/** A path after a scheme, with no slashes or three before it. */
export const pathIn = (url: string): string => url.slice(url.indexOf(':') + 1).replace(/^\/\/\//, '/')
