import type { Command } from './clients/connection.js'

/** What a script may run: its commands and the key pattern are judged when it runs them. PEXPIRE deletes the key. */
const PROBE = `
redis.call('TIME')
redis.call('GET', KEYS[1])
redis.call('MGET', KEYS[1])
redis.call('PTTL', KEYS[1])
redis.call('SET', KEYS[1], '', 'PX', 1)
redis.call('SETRANGE', KEYS[1], 0, '')
redis.call('PEXPIRE', KEYS[1], 0)
return 0`

/** A call that shows whether the user may run what a sliding log needs. It changes nothing that lasts. */
export const LOG_PROBE = `
redis.call('TIME')
redis.call('EXISTS', KEYS[1])
redis.call('ZMSCORE', KEYS[1], '')
redis.call('ZRANGEBYSCORE', KEYS[1], 0, 0)
redis.call('ZREMRANGEBYSCORE', KEYS[1], 1, 1)
redis.call('ZADD', KEYS[1], 0, '')
redis.call('PERSIST', KEYS[1])
redis.call('PTTL', KEYS[1])
redis.call('PEXPIRE', KEYS[1], 0)
return 0`

const NO_SCRIPT = '0'.repeat(40)

/** Commands that are refused to a user without the rights that `docs/how-to/redis.md` lists for all limiters. */
export function rightsProbe(name: string, source = PROBE, isOptimistic = false): Command[] {
  if (isOptimistic) return [['WATCH', name], ['ZRANGE', name, '0', '0'], ['ZREM', name, ''], ['UNWATCH']]
  return [
    ['EVALSHA', NO_SCRIPT, '1', name],
    ['EVAL', source, '1', name],
  ]
}
