// The names of what a store has on Redis, and the script that changes a policy.

/**
 * All names have the prefix as their hash tag. So a Cluster keeps a store on one node, where one command reads several
 * policies and one script changes a policy, the list of keys and the revision.
 */
export class RedisNames {
  /** A sorted set of the keys that have policies. All scores are 0, so their order is that of their bytes. */
  readonly keys: string
  /**
   * A number that each change raises by 1. The first one is random: so a server that has lost all is not taken for what
   * it was.
   */
  readonly revision: string
  /** Messages: the revision, a space, and the key that has changed. */
  readonly channel: string
  readonly #policy: string

  constructor(prefix: string, database: number) {
    this.keys = `{${prefix}}:keys`
    this.revision = `{${prefix}}:revision`
    // All databases of a server have the same channels.
    this.channel = database === 0 ? `{${prefix}}:changes` : `{${prefix}}:changes:${database}`
    this.#policy = `{${prefix}}:policy:`
  }

  policyOf(key: string): string {
    return this.#policy + key
  }
}

/** Revisions begin below this, so that they stay exact in a double. */
export const LARGEST_START = 2 ** 47

const ABSENT = Buffer.alloc(0)
const PRESENT = Buffer.from('=')

/** A document as an argument of {@link REPLACE}. */
export const argumentOf = (text: Buffer | undefined): Buffer =>
  text === undefined ? ABSENT : Buffer.concat([PRESENT, text])

/**
 * Replaces a document if it is still the expected one. It reads all that it changes before it changes anything: an
 * error, such as that of a value of another type, leaves all as it was. A deletion frees memory before it counts the
 * change: a server whose memory is full refuses a script only before its first write.
 *
 * KEYS: the policy, the keys, the revision. ARGV: the expected and the next document, the key, the channel, and the
 * revision before the first one. Returns 1; or 0 and the document that is there, nil for none.
 */
export const REPLACE = `
local current = redis.call('GET', KEYS[1])
if (current and '=' .. current or '') ~= ARGV[1] then return {0, current} end
redis.call('ZSCORE', KEYS[2], ARGV[3])
local revision = redis.call('GET', KEYS[3])
if revision and not string.match(revision, '^%d+$') then
  return redis.error_reply('ERR ' .. KEYS[3] .. ' is not a number')
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], ARGV[3])
end
if not revision then redis.call('SET', KEYS[3], ARGV[5]) end
revision = redis.call('INCR', KEYS[3])
if ARGV[2] ~= '' then
  redis.call('SET', KEYS[1], string.sub(ARGV[2], 2))
  redis.call('ZADD', KEYS[2], 0, ARGV[3])
end
redis.call('PUBLISH', ARGV[4], string.format('%.0f', revision) .. ' ' .. ARGV[3])
return {1}
`

/** The bounds of ZRANGEBYLEX for keys with a prefix, after a key. No byte of UTF-8 is 255. */
export function boundsOf(prefix: string, after: string | undefined): [least: Buffer, most: Buffer | string] {
  const from = Buffer.from(prefix)
  const isBehind = after !== undefined && Buffer.compare(Buffer.from(after), from) >= 0
  const least = isBehind ? Buffer.from(`(${after}`) : Buffer.concat([Buffer.from('['), from])
  return [least, prefix === '' ? '+' : Buffer.concat([Buffer.from('('), from, Buffer.from([255])])]
}
