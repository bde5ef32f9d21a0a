import { codeOf } from '../../remote/answers.js'
import { messageOf } from '../../remote/last-error.js'
import type { Command } from '../clients/connection.js'
import { OLD_SERVER, withoutMemory } from '../script.js'
import { IS_OTHER_TYPE, LEASED, RECORD, REFUNDED, ValueVersion } from '../script-codes.js'

/**
 * Empties a value: no units, no block. It keeps its birth, with one more refund, and stays until its charges would
 * have left. So no process takes it for one that the server has lost. What nodes hold counts on, because they may spend
 * it. Deletes what is no such value.
 * ARGV[1]: the milliseconds for which a value without an end stays; one with leases: twice as long.
 */
export const CLEAR_SCRIPT = `
${IS_OTHER_TYPE}
${REFUNDED}
local up, pack, sub, rep = struct.unpack, struct.pack, string.sub, string.rep
local k, forMs = KEYS[1], ARGV[1] + 0
local s = redis.pcall('GET', k)
if type(s) == 'table' and not isOtherType(s) then redis.call('GET', k) end -- raises it
local len = type(s) == 'string' and #s or 0

local function birthAt(at) return pack('>I6', refunded(up('>I6', s, at))) end

local v
if len == 27 and up('B', s) == ${ValueVersion.COUNTER} then
  v = sub(s, 1, 3) .. birthAt(4) .. sub(s, 10, 15) .. rep('\\0', 12)
elseif len >= 20 and len % 2 == 0 then
  local kind = up('>I2', s, len - 1) - ${ValueVersion.NARROW}
  if kind >= 0 and kind <= ${ValueVersion.WIDE_LEASED_BLOCKED - ValueVersion.NARROW} then
    local isBlocked, isLeased = kind % 2 == 1, kind >= ${LEASED}
    local size = kind % ${LEASED} >= ${ValueVersion.WIDE - ValueVersion.NARROW} and 6 or 4
    local tail = 20 - size
    local entries, records = len - tail - (isBlocked and 6 or 0), ''
    if isLeased and entries >= 2 then
      local to, bytes = entries, ${RECORD.size} * up('>I2', s, entries - 1) + 2
      entries = entries - bytes
      records = sub(s, entries + 1, to)
    end
    if entries >= size and entries % size == 0 then
      v = sub(s, 1, size - 3) .. rep('\\0', 3) .. rep('\\0', entries > size and size or 0) .. records
        .. birthAt(len - tail + 1) .. sub(s, len - tail + 7, len - 2)
        .. pack('>I2', ${ValueVersion.NARROW} + kind - kind % 2)
      if isLeased then forMs = 2 * forMs end
    end
  end
end
if not v then return redis.call('UNLINK', k) end
redis.call('SET', k, v, 'KEEPTTL')
if redis.call('PTTL', k) < 0 then redis.call('PEXPIRE', k, forMs) end
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
    await Promise.all(names.map((name) => emptyOne(send, script, [name, forMs])))
  } while (cursor !== '0')
}

async function emptyOne(
  send: (command: Command) => Promise<unknown>,
  script: string,
  args: readonly string[],
): Promise<void> {
  const run = (source: string) => send(['EVAL', source, '1', ...args])
  try {
    await run(script)
  } catch (full) {
    if (codeOf(full) !== 'OOM') throw full
    await run(withoutMemory(script)).catch((error: unknown) => {
      throw OLD_SERVER.test(messageOf(error)) ? full : error
    })
  }
}
