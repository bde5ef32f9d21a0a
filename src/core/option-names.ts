/** Refuses unknown options, and names the one that was probably meant. */

/** The options beside those of rules: of the engine and its memory. */
export const ENGINE_OPTIONS: readonly string[] = [
  'maxKeys',
  'onFull',
  'engine',
  'pool',
  'clock',
  'shared',
  'hugePages',
  'nearLimit',
]

/** The options that belong to a configuration store. */
export const CONFIG_OPTIONS: readonly string[] = [
  'config',
  'default',
  'onMiss',
  'configCache',
  'maxWindows',
  'onConfigError',
]

/** By the name of an option: what other rate limiters call it. */
const ALIASES: Readonly<Record<string, string>> = {
  algorithm: 'strategy',
  allow: 'allowList whitelist safelist',
  ban: 'blockDuration banDuration',
  burst: 'bucketSize',
  cost: 'weight hits',
  countIf: 'requestWasSuccessful skipSuccessfulRequests skipFailedRequests',
  deadline: 'timeout timeoutMs commandTimeout',
  delay: 'delayAfter delayMs maxDelayMs',
  deny: 'denyList blacklist blocklist',
  file: 'path',
  key: 'keyGenerator keyFn keyBy getTracker identifier',
  limit: 'max maxRequests requests requestLimit points maxHits total capacity tokensPerInterval',
  limiter: 'store rateLimiter',
  maxKeys: 'cache cacheSize maxSize',
  maxThreads: 'threads workers poolSize',
  message: 'errorMessage errorResponseBuilder',
  onError: 'passOnStoreError skipOnError',
  onLimited: 'onLimitReached onExceeded',
  path: 'file filename',
  prefix: 'keyPrefix namespace',
  rules: 'limits throttlers',
  standard: 'headers standardHeaders legacyHeaders addHeaders',
  statusCode: 'status code',
  token: 'apiKey bearer authorization secret',
  trustProxy: 'proxy trustedProxies',
  url: 'baseUrl endpoint address host',
  urls: 'endpoints addresses hosts engines',
  window: 'windowMs windowSize timeWindow duration interval ttl period per',
}

/** The option that others call by this name. Only errors need it. */
function ownNameOf(letters: string): string | undefined {
  const isMeant = ([, others]: readonly [string, string]) =>
    others.split(' ').some((other) => plain(other) === letters)
  return Object.entries(ALIASES).findLast(isMeant)?.[0]
}

/**
 * Calls `refuse` for the first option of an unknown name, with a text of what is expected.
 * @throws the error that `refuse` returns
 */
export function refuseUnknown(
  options: object,
  known: readonly string[],
  refuse: (name: string, expected: string) => Error,
): void {
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue
    const meant = meantBy(name, known)
    const only = `only ${known.join(', ')}`
    throw refuse(name, meant === undefined ? only : `${only} (did you mean ${meant}?)`)
  }
}

/** The known name that is nearest to another one: by what others call it, or by its letters. */
export function meantBy(name: string, known: readonly string[]): string | undefined {
  const letters = plain(name)
  const own = ownNameOf(letters)
  if (own !== undefined && known.includes(own)) return own
  let nearest: string | undefined
  let least = Math.floor(Math.min(letters.length, 12) / 4) + 2
  for (const each of known) {
    const distance = distanceOf(letters, plain(each))
    if (distance < least) [nearest, least] = [each, distance]
  }
  return nearest
}

/** A name without regard to how its words are joined. */
function plain(name: string): string {
  return name.slice(0, 40).replace(/[_-]/g, '').toLowerCase()
}

/** How many letters must be put in, taken out or replaced to make one text the other. */
function distanceOf(from: string, to: string): number {
  let last = Array.from({ length: to.length + 1 }, (_, i) => i)
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1]
    for (let j = 0; j < to.length; j++)
      next.push(Math.min(last[j]! + Number(letter !== to[j]), last[j + 1]! + 1, next[j]! + 1))
    last = next
  }
  return last[to.length]!
}
