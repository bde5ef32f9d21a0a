/** The URL of a store that is none. */
export class WrongAddress extends Error {}

/** Where a store is, as its URL says. */
export type StoreAddress =
  | { readonly kind: 'lmdb' | 'file'; readonly path: string }
  | { readonly kind: 'redis'; readonly url: string; readonly prefix?: string }
  | {
      readonly kind: 'dynamodb'
      readonly region: string
      readonly table: string
      readonly endpoint?: string
    }
  | {
      readonly kind: 'mongodb'
      readonly url: string
      readonly database: string
      readonly collection?: string
    }

type Reader = (url: string) => StoreAddress

/** The form of each kind of URL, as errors name it. */
const FORMS = {
  lmdb: 'lmdb:PATH, such as lmdb:./limits',
  file: 'file:PATH of a JSON or YAML file, such as file:./policies.yaml',
  redis: 'redis://HOST:PORT/DATABASE?prefix=PREFIX, such as redis://localhost:6379/0',
  dynamodb: 'dynamodb://REGION/TABLE?endpoint=URL, such as dynamodb://eu-central-1/limits',
  mongodb: 'mongodb://HOST:PORT/DATABASE?collection=NAME, such as mongodb://localhost:27017/limits',
}
export const STORE_FORMS = Object.values(FORMS).map((form) => form.split(',')[0]!)

const READERS: Record<string, Reader> = {
  'lmdb:': (url) => ({ kind: 'lmdb', path: pathIn(url, FORMS.lmdb) }),
  'file:': (url) => ({ kind: 'file', path: pathIn(url, FORMS.file) }),
  'redis:': redisIn,
  'rediss:': redisIn,
  'dynamodb:': dynamoIn,
  'mongodb:': mongoIn,
  'mongodb+srv:': mongoIn,
}

/**
 * Reads the URL of a store.
 * @throws WrongAddress that says what would be right, without the password of the URL
 */
export function readStoreAddress(url: string): StoreAddress {
  const read = READERS[/^[a-z+]+:/i.exec(url)?.[0].toLowerCase() ?? '']
  if (read === undefined) {
    const all = `${STORE_FORMS.slice(0, -1).join(', ')} or ${STORE_FORMS.at(-1)}`
    throw invalid(url, all)
  }
  return read(url)
}

/**
 * A URL without its password, for messages. A password that is not encoded may have a slash, a question mark or an @: it
 * ends at the last @ before the query, or at the last one of all if what would be the port is no number.
 */
export function shownUrl(url: string): string {
  const shown = url
    .replace(/^([^:]+:\/\/[^/?@:]*:)[^?]*@/, '$1***@')
    .replace(/^([^:]+:\/\/[^/?@:]*:)(?!\d*(?:[/?#,]|$)|\*\*\*@).*@/, '$1***@')
  return shown.replace(/([?&](?:password|pass|pwd)=)[^&#]*/gi, '$1***')
}

function invalid(url: string, expected: string): WrongAddress {
  return new WrongAddress(`expected ${expected}, got ${JSON.stringify(shownUrl(url))}`)
}

/** A path of the file system. Two slashes would be a host, so there may be none or three. */
function pathIn(url: string, form: string): string {
  const path = url.slice(url.indexOf(':') + 1)
  if (path === '' || /^\/\/(?!\/)/.test(path)) throw invalid(url, form)
  return path.replace(/^\/\/\//, '/')
}

function redisIn(url: string): StoreAddress {
  const { parsed, options } = parts(url, FORMS.redis, ['prefix'])
  if (parsed.hostname === '' || !/^(?:\/\d*)?$/.test(parsed.pathname)) throw invalid(url, FORMS.redis)
  parsed.search = '' // ioredis would take it for options of its own
  return { kind: 'redis', url: parsed.href, ...options }
}

function dynamoIn(url: string): StoreAddress {
  const { parsed, options } = parts(url, FORMS.dynamodb, ['endpoint'])
  const [, table, more] = parsed.pathname.split('/')
  if (parsed.hostname === '' || !table || more !== undefined) throw invalid(url, FORMS.dynamodb)
  if (options.endpoint !== undefined && !/^https?:\/\/./.test(options.endpoint))
    throw invalid(url, `an endpoint such as http://localhost:8000 in ${FORMS.dynamodb.split(',')[0]}`)
  return { kind: 'dynamodb', region: parsed.hostname, table: decodeURIComponent(table), ...options }
}

/** All but the collection goes to the driver. A URL with several hosts is none of the WHATWG. */
function mongoIn(url: string): StoreAddress {
  const [, before, database, query = ''] = /^([^/]+:\/\/[^/?]+)\/([^/?]+)(?:\?(.*))?$/.exec(url) ?? []
  if (before === undefined || database === undefined) throw invalid(url, FORMS.mongodb)
  const options = new URLSearchParams(query)
  const collection = options.get('collection') ?? undefined
  options.delete('collection')
  return {
    kind: 'mongodb',
    url: `${before}/${database}${options.size > 0 ? `?${options}` : ''}`,
    database: decodeURIComponent(database),
    ...(collection !== undefined && { collection }),
  }
}

/** A URL with a host, and its options. */
function parts<Name extends string>(
  url: string,
  form: string,
  names: readonly Name[],
): { parsed: URL; options: Partial<Record<Name, string>> } {
  if (!URL.canParse(url)) throw invalid(url, form)
  const parsed = new URL(url)
  const options: Partial<Record<Name, string>> = {}
  for (const [name, value] of parsed.searchParams) {
    if (!names.includes(name as Name) || value === '')
      throw invalid(url, `only ${names.join(', ')} after the question mark of ${form.split(',')[0]}`)
    options[name as Name] = value
  }
  return { parsed, options }
}
