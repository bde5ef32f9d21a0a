import { checkObject, checkOptions } from '../api/checks.js'
import type { Duration } from '../core/duration.js'
import { invalid } from '../core/errors.js'
import type { RuleOptions } from '../core/rule-options.js'
import {
  checkRemoteNames,
  checkRemoteOptions,
  type RemoteOptions,
  type RemoteSettings,
} from '../remote/remote-options.js'
import type { EngineSettings, NamedEngine } from './engine.js'
import { rulesExpected, unknownRules } from './service-rules.js'
import type { ClientTls } from './transport.js'

export type { ClientTls } from './transport.js'

/** An engine: its address, or its address with the name that decides which keys it has. */
export type ClientEngine = string | URL | { readonly name: string; readonly url: string | URL }

/** The options of {@link createClient}. Either `url` or `urls` is needed. */
export interface ClientOptions extends Omit<RemoteOptions, 'prefix' | 'deadline'> {
  /**
   * The address of the service, or of a balancer before its engines, such as `'http://127.0.0.1:8080'`. A path is put
   * before the paths of the service.
   */
  url?: string | URL
  /**
   * In place of `url`: 1 to 256 engines that count in memories or files of their own. The client sends each key to one of
   * them, by the formula of `docs/how-to/sharding-redis.md`. The name of an engine is its `host:port`, or the `name`
   * here. All clients need the same names; the order makes no difference.
   * @example
   * ```ts
   * createClient({ urls: ['http://10.0.0.1:8080', { name: 'b', url: 'http://10.0.0.2:8080' }] })
   * ```
   */
  urls?: readonly ClientEngine[]
  /** The name of a limiter that the service has. Default: its first one. */
  limiter?: string
  /**
   * The token of the service: 1 to 4,096 visible characters of ASCII. A function is called for each request, so that a
   * token can change.
   */
  token?: string | (() => string)
  /** Certificates and keys, for an address with `https:`. */
  tls?: ClientTls
  /**
   * How long a call may take until it is decided without the service: 1 ms to a minute. Leave the engine time for its own
   * store.
   * @default '100ms'
   */
  deadline?: Duration
  /**
   * Whether a request that charges is sent once more if its connection is lost before the answer. It then has an
   * `Idempotency-Key`, by which the service knows it, if the service keeps such keys. Else it is not sent again.
   * @default false
   */
  retryCharges?: boolean
  /**
   * The rules that the service is expected to have: 1 to 16. Without them `limiter.rules` shows one rule without a real
   * limit, and `onOutage: 'local'` refuses, until the service has shown its own. What it shows replaces them.
   */
  rules?: readonly RuleOptions[]
}

/** The options, checked. */
export interface ClientPlan extends RemoteSettings, EngineSettings {
  readonly limiter: string | undefined
  readonly engines: readonly NamedEngine[]
  readonly retryCharges: boolean
}

const OWN_OPTIONS = ['url', 'urls', 'limiter', 'token', 'tls', 'retryCharges']
const TLS_OPTIONS = ['ca', 'cert', 'key', 'passphrase', 'servername']
const MOST_ENGINES = 256
const LONGEST_NAME = 256
const DEADLINE_MS = 100
const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' }

/** @throws MillraceError naming the option, the value and what would be right */
export function checkClientOptions(options: ClientOptions): ClientPlan {
  checkRemoteNames(options, OWN_OPTIONS, [])
  const { url, urls, limiter, token, tls, retryCharges = false, rules: expected, ...others } = options
  if ((url === undefined) === (urls === undefined))
    throw invalid('url', url, 'an address here, or a list of them in urls')
  const engines = urls === undefined ? [checkEngine(url, 'url')] : checkEngines(urls)
  if (limiter !== undefined && !(typeof limiter === 'string' && limiter !== ''))
    throw invalid('limiter', limiter, 'the name of a limiter of the service')
  if (typeof retryCharges !== 'boolean') throw invalid('retryCharges', retryCharges, 'true or false')
  const rules = expected === undefined ? unknownRules() : rulesExpected(expected)
  const { deadline = DEADLINE_MS } = others
  const named = { ...others, deadline, prefix: (limiter ?? 'default').replace(/[{}\0]/g, '').slice(0, 64) }
  return {
    limiter,
    engines,
    retryCharges,
    token: checkToken(token),
    tls: checkTls(tls, engines),
    ...checkRemoteOptions(named, rules, 'service'),
  }
}

function checkEngines(urls: unknown): readonly NamedEngine[] {
  if (!Array.isArray(urls) || urls.length < 1 || urls.length > MOST_ENGINES)
    throw invalid('urls', urls, `an array of 1 to ${MOST_ENGINES} addresses, or of { name, url }`)
  const engines = Array.from(urls, (engine: unknown, i) => checkEngine(engine, `urls[${i}]`))
  for (const [i, { name }] of engines.entries()) {
    const other = engines.findIndex((engine) => engine.name === name)
    if (other < i) throw invalid(`urls[${i}]`, name, `another name than that of urls[${other}]`)
  }
  return engines
}

function checkEngine(engine: unknown, option: string): NamedEngine {
  if (typeof engine === 'string' || engine instanceof URL) {
    const url = checkUrl(engine, option)
    return { name: `${url.hostname}:${url.port || DEFAULT_PORTS[url.protocol]}`, url }
  }
  checkObject(engine, option)
  checkOptions(engine, ['name', 'url'], option)
  const { name, url } = engine as Partial<NamedEngine>
  if (typeof name !== 'string' || name === '' || name.length > LONGEST_NAME || !name.isWellFormed())
    throw invalid(`${option}.name`, name, `1 to ${LONGEST_NAME} characters`)
  return { name, url: checkUrl(url, `${option}.url`) }
}

function checkUrl(given: unknown, option: string): URL {
  const url = typeof given === 'string' ? parsed(given) : given
  const isPlain =
    url instanceof URL &&
    url.protocol in DEFAULT_PORTS &&
    url.username === '' &&
    url.search === '' &&
    url.hash === ''
  if (isPlain) return new URL(url)
  throw invalid(option, given, 'an http: or https: address, without a user, a query and a fragment')
}

const parsed = (text: string): URL | undefined => (URL.canParse(text) ? new URL(text) : undefined)

function checkToken(token: unknown): (() => string) | undefined {
  if (token === undefined) return undefined
  if (typeof token === 'function') return () => checkedToken((token as () => unknown)())
  const own = checkedToken(token)
  return () => own
}

/** The value stays out of the error: it is a secret. */
function checkedToken(token: unknown): string {
  if (typeof token === 'string' && /^[!-~]{1,4096}$/.test(token)) return token
  const kind = typeof token === 'string' ? 'a text of others' : token
  throw invalid('token', kind, '1 to 4,096 visible characters of ASCII, or a function that returns them')
}

function checkTls(tls: unknown, engines: readonly NamedEngine[]): ClientTls {
  if (tls === undefined) return {}
  checkOptions(tls, TLS_OPTIONS, 'tls')
  const plain = engines.find(({ url }) => url.protocol !== 'https:')
  if (plain !== undefined) throw invalid('tls', plain.url.protocol, 'addresses with https: only')
  const { cert, key } = tls as ClientTls
  if ((cert === undefined) !== (key === undefined))
    throw invalid(cert === undefined ? 'tls.cert' : 'tls.key', undefined, 'a certificate with its key')
  return { ...(tls as ClientTls) }
}
