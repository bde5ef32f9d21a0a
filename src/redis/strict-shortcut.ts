import type { RemoteRule } from './remote-rule.js'
import { ValueVersion } from './script-codes.js'

/**
 * A check by one sliding window without flags. It ends before a key that is out of the ordinary. `x - x % 1` is floor
 * and `x + -x % 1` is ceil, without a call.
 */
export const shortcutOf = ({ shape, parts, windowMs }: RemoteRule, isTest: boolean): string => `
if op == 'c' then
  local limit = ARGV[2] + 0
  local here = now * ${parts} / ${windowMs}
  here = here - here % 1
  -- MGET takes a value of another type for none: what is not there is asked once more, and so is what has been changed
  all = K > 1 and call('MGET', unpack(KEYS))
  while j < K do
    local k, cost, g = KEYS[j + 1], ARGV[j + ${isTest ? 4 : 3}] + 0, here
    local s = all and not changed[k] and all[j + 1] or redis.pcall('GET', k)
    read = s
    local born, mark, a, sum, p, len = now, g, 0, 0, 22, 0
    if s then
      len = #s
      if len < 21 or len % 6 ~= 3 then break end -- an error has no length
      local head, e, c
      if len > 21 then head, born, mark, a, sum, e, c = up('>I3I6I6I3I3I3I3', s)
      else head, born, mark, a, sum = up('>I3I6I6I3I3', s) end
      if head ~= ${ValueVersion.PLAIN * 2 ** 16 + shape} then break end
      if g < mark then g = mark end
      if g - mark > ${parts} then a, sum, p = 0, 0, len + 1
      else
        while p < len and (g - e) % 16777216 > ${parts} do
          sum, p = sum - c, p + 6
          if p < len then e, c = up('>I3I3', s, p) end
        end
      end
    end
    if cost == 0 or cost > limit - sum then break end
    sum = sum + cost
    if all then changed[k] = true end
    local emptyMs = (g + ${parts + 1}) * ${windowMs} / ${parts}
    emptyMs = emptyMs + -emptyMs % 1
    if mark == g and p == 22 and s then call('SETRANGE', k, '15', pack('>I3I3', a + cost, sum))
    else
      local v
      if not s then v = pack('>I3I6I6I3I3', ${ValueVersion.PLAIN * 2 ** 16 + shape}, born, g, cost, sum)
      elseif mark == g then v = sub(s, 1, 9) .. pack('>I6I3I3', g, a + cost, sum) .. sub(s, p)
      elseif a == 0 then v = sub(s, 1, 9) .. pack('>I6I3I3', g, cost, sum) .. sub(s, p)
      else v = sub(s, 1, 9) .. pack('>I6I3I3', g, cost, sum) .. sub(s, p) .. pack('>I3I3', mark % 16777216, a) end
      ${isTest ? "call('SET', k, v)" : expiring(parts, windowMs)}
    end
    if K == 1 then return {limit - sum, emptyMs - now, g, born} end
    reply = reply or {}
    reply[o + 1], reply[o + 2], reply[o + 3], reply[o + 4] = limit - sum, emptyMs - now, g, born
    o, j = o + 4, j + 1
  end
  if j == K then return reply end
end`

/** Sets the value and its end, which is the same in an even granule and the next one: see `endOf`. */
const expiring = (parts: number, windowMs: number): string => `
      local last = g - g % 2
      if s and mark >= last then call('SET', k, v, 'KEEPTTL')
      else
        local endMs = (last + ${parts + 2}) * ${windowMs} / ${parts}
        call('SET', k, v, 'PX', endMs + -endMs % 1 - now + 1)
      end`
