import type { Command } from './connection.js'
import { BIRTH_RANGE_MS, ValueVersion } from './script-codes.js'

/**
 * Empties a value: no units, no block. It keeps its birth, with one more refund, and stays until its charges would
 * have left. So no process takes it for one that the server has lost. Deletes what is no such value.
 * ARGV[1]: the milliseconds for which a value without an end stays.
 */
const CLEAR_SCRIPT = `
local k = KEYS[1]
local s = redis.pcall('GET', k)
local version = type(s) == 'string' and string.byte(s, 1)
if (version ~= ${ValueVersion.PLAIN} and version ~= ${ValueVersion.BLOCKED}) or #s < 21 or #s % 6 ~= 3 then
  return redis.call('UNLINK', k)
end
local born = struct.unpack('>I6', s, 4)
born = (math.floor(born / ${BIRTH_RANGE_MS}) + 1) % 32 * ${BIRTH_RANGE_MS} + born % ${BIRTH_RANGE_MS}
local v = string.sub(s, 1, 3) .. struct.pack('>I6', born) .. string.sub(s, 10, 15) .. string.rep('\\0', #s < 27 and 6 or 12)
redis.call('SET', k, v, 'KEEPTTL')
if redis.call('PTTL', k) < 0 then redis.call('PEXPIRE', k, ARGV[1]) end
return 1
`

/**
 * Empties all keys of a pattern on one server, a thousand at a time.
 * @param script empties one key: see {@link CLEAR_SCRIPT}
 */
export async function clearNames(
  send: (command: Command) => Promise<unknown>,
  pattern: string,
  longestMs: number,
  script = CLEAR_SCRIPT,
): Promise<void> {
  const forMs = String(3 * longestMs)
  let cursor = '0'
  do {
    const page = await send(['SCAN', cursor, 'MATCH', pattern, 'COUNT', '1000'])
    const [next, names] = page as [string, string[]]
    cursor = String(next)
    await Promise.all(names.map((name) => send(['EVAL', script, '1', name, forMs])))
  } while (cursor !== '0')
}
