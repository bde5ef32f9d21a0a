// The options of the service. Flags, the file, the environment, --print-config, --help and the table of
// `docs/service.md` come from here.
import { checkLimiters, checkSigningKeys, checkTokens } from './checks.js'
import { choice, data, duration, integer, type Option, secret, text, texts, toggle } from './option.js'

const path = (help: string) => text<string | undefined>({ value: 'path', help, fallback: undefined })
const MEBIBYTE = 2 ** 20

export const OPTIONS = {
  limit: texts({
    value: 'n/window',
    help: 'A limit and its window, such as 100/1m, of the limiter `default`. Several: all of them hold.',
    fallback: [],
  }),
  limiters: data(
    {
      help: 'Limiters by name, with the options of `createLimiter`: one rule, or `rules`. The first one is the default.',
      fallback: {},
    },
    checkLimiters,
  ),
  maxKeys: integer([1, 2 ** 26], {
    help: 'Keys that each limiter has room for, in the memory of this process or in a shared file.',
    fallback: 100_000,
  }),
  counts: text({
    value: 'place',
    help: 'Where counts live: `memory`, `file:PATH`, `redis://HOST:PORT/DATABASE`, `rediss://...`, `redis://HOST:PORT,HOST:PORT` (shards), `redis+sentinel://HOST:PORT,HOST:PORT/NAME/DATABASE`, `memcached://HOST:PORT,HOST:PORT`.',
    fallback: 'memory',
  }),
  countsBefore: text<string | undefined>({
    value: 'place',
    help: 'The list of shards before a change of `counts`: keys that have moved are charged at both servers for the longest window and `changeWithin`.',
    fallback: undefined,
  }),
  changeWithin: duration({
    help: 'In what time all engines are restarted with another list of shards.',
    fallback: 300_000,
  }),
  countsPassword: secret(
    text<string | undefined>({ help: 'The password of the Redis with the counts.', fallback: undefined }),
  ),
  countsPasswordFile: path('A file with `countsPassword`.'),
  prefix: text({ help: 'Begins all keys in Redis or Memcached.', fallback: 'millrace' }),
  strict: toggle({
    help: 'On Memcached: never more than the limit, by values in place of counters.',
    fallback: false,
  }),
  deadline: duration({ help: 'For how long a decision waits for Redis or Memcached.', fallback: 50 }),
  onOutage: choice(['closed', 'open', 'local'], {
    help: 'What holds while Redis or Memcached does not answer: `closed` answers 503, `open` allows, `local` counts a share of the limit.',
    fallback: 'closed',
  }),
  nodes: integer<number | undefined>([1, 1_000_000], {
    help: 'The number of engines, for `onOutage: local`: each has its share of the limit.',
    fallback: undefined,
  }),
  envoyConfig: texts({
    value: 'path',
    help: 'Files or directories of YAML with limits by domain and descriptor, for Envoy. Read again when they change.',
    fallback: [],
  }),
  grpcPort: integer<number | undefined>([0, 65_535], {
    help: 'The port to answer Envoy on, by gRPC, at `host`. 0: any free one. It needs `envoyConfig`.',
    fallback: undefined,
  }),
  envoyDecide: choice(['together', 'each'], {
    help: 'How the descriptors of a request are decided: `together`, all or nothing, or `each` by itself, as envoyproxy/ratelimit does.',
    fallback: 'together',
  }),
  envoyShadow: toggle({
    help: 'Admits all requests of Envoy. Answers and metrics say which ones are over a limit.',
    fallback: false,
  }),
  envoyHeaders: texts({
    value: 'name,name,name',
    help: 'The names of three headers that Envoy adds to responses: for the limit, what is left of it, and the seconds until it resets, such as `RateLimit-Limit,RateLimit-Remaining,RateLimit-Reset`. None by default.',
    fallback: [],
  }),
  grpcMaxStreams: integer([1, 1_000_000], {
    help: 'The most calls at once on a gRPC connection.',
    fallback: 1_000,
  }),
  grpcConnectionAge: duration({
    help: 'How long a gRPC connection lives, with a tenth more or less at random, so that callers find new engines. 0: as long as the caller likes.',
    fallback: 3_600_000,
  }),
  keyHeader: toggle({
    help: 'The key of each request is in its header `X-Millrace-Key`, by which a balancer chooses the engine. A request with another key in its body is refused.',
    fallback: false,
  }),
  policies: text<string | undefined>({
    value: 'url',
    help: 'Where the policies of keys live: `file:PATH`, `lmdb:PATH`, `redis://...`, `mongodb://...`, `dynamodb://REGION/TABLE`.',
    fallback: undefined,
  }),
  policiesPassword: secret(
    text<string | undefined>({ help: 'The password of the store of policies.', fallback: undefined }),
  ),
  policiesPasswordFile: path('A file with `policiesPassword`.'),
  host: text({
    value: 'address',
    help: 'The address to listen on. One off loopback needs `tokens` or TLS.',
    fallback: '127.0.0.1',
  }),
  hosts: texts({
    help: 'Names that requests to an engine without `tokens` may have as `Host`, beside `localhost` and loopback addresses.',
    fallback: [],
  }),
  port: integer([0, 65_535], { help: 'The port to listen on. 0: any free one.', fallback: 8080 }),
  tokens: secret(
    data(
      {
        help: 'Tokens of callers: a list of `{ token, scopes, name }`. Scopes: `decide`, `read`, `change`.',
        fallback: [],
      },
      checkTokens,
    ),
  ),
  tokensFile: path('A YAML or JSON file with `tokens`.'),
  signingKeys: secret(
    data(
      {
        help: 'Keys of 32 characters or more that sign the tokens of decisions. The first one signs, all of them are taken.',
        fallback: [],
      },
      checkSigningKeys,
    ),
  ),
  signingKeysFile: path('A YAML or JSON file with `signingKeys`.'),
  tlsCert: path('A PEM file with the certificate of the server. It needs `tlsKey`.'),
  tlsKey: path('A PEM file with the key of the certificate.'),
  tlsClientCa: path(
    'A PEM file with the authority of client certificates: only clients with one are answered.',
  ),
  tokenLifetime: duration({
    help: 'How long the token of a decision or a reservation can be used.',
    fallback: 600_000,
  }),
  idempotencyLifetime: duration({
    help: 'How long the answer to an `Idempotency-Key` is kept.',
    fallback: 600_000,
  }),
  idempotencyEntries: integer([1, 10_000_000], {
    help: 'The most answers to an `Idempotency-Key` that this engine keeps. The oldest go, also if all are more than 64 MiB.',
    fallback: 10_000,
  }),
  maxBody: integer([1_024, 64 * MEBIBYTE], {
    help: 'The largest body of a request, in bytes.',
    fallback: MEBIBYTE,
  }),
  maxHeaders: integer([1_024, MEBIBYTE], {
    help: 'The largest headers of a request, in bytes.',
    fallback: 16_384,
  }),
  maxBatch: integer([1, 65_536], { help: 'The most keys of a request.', fallback: 1_024 }),
  maxConnections: integer([1, 1_000_000], {
    help: 'The most connections at once. More are closed.',
    fallback: 10_000,
  }),
  requestTimeout: duration({ help: 'How long a client may take to send a request.', fallback: 10_000 }),
  keepAlive: duration({ help: 'How long a connection without a request stays open.', fallback: 72_000 }),
  drainDelay: duration({
    help: 'How long after SIGTERM new requests are still answered, while /readyz says 503: the time that a balancer needs to see it.',
    fallback: 0,
  }),
  drainTimeout: duration({ help: 'How long requests in flight may take after SIGTERM.', fallback: 10_000 }),
  logLevel: choice(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
    help: 'What is logged, as lines of JSON on standard error. No level has keys, tokens or bodies.',
    fallback: 'info',
  }),
} as const satisfies Record<string, Option>

export type OptionName = keyof typeof OPTIONS

/** All options, checked. */
export type Settings = {
  readonly [Name in OptionName]: (typeof OPTIONS)[Name] extends Option<infer T> ? T : never
}

export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[]
export const optionOf = (name: OptionName): Option => OPTIONS[name]

/** The name of an option as a flag: `--max-keys`. */
export const flagOf = (name: string): string =>
  `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
/** The name of an option in the environment: `MILLRACE_SERVE_MAX_KEYS`. */
export const variableOf = (name: string): string =>
  `MILLRACE_SERVE_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
