import type { RemoteRule } from '../../remote/remote-rule.js'
import { ALL_ADMITTED } from '../script-codes.js'
import { layoutOf } from './strict-value.js'

/**
 * A check by one sliding window without flags. It ends before a key that is out of the ordinary. `x - x % 1` is floor
 * and `x + -x % 1` is ceil, without a call. What the keys of a call have in common is made once: all are charged in
 * the present granule, and many have as many older ones.
 */
export function shortcutOf(rule: RemoteRule, isTest: boolean): string {
  const { shape, parts, windowMs } = rule
  const { size, low, entry, high, tail, version } = layoutOf(rule)
  const costAt = isTest ? 4 : 3
  const head = shape * 2 ** 16 + version
  const last = `I6${high}I4`
  return `
if op == 'c' then
  local limit, cost = ARGV[2] + 0, ARGV[${costAt}] + 0
  local areAlike = #ARGV == ${costAt}
  local g = now * ${parts} / ${windowMs}
  g = g - g % 1
  local low = g % ${low}
  local high = (g - low) / ${low}
  local reset = (g + ${parts + 1}) * ${windowMs} / ${parts}
  reset = reset + -reset % 1 - now
  -- MGET takes a value of another type for none: what is not there is asked once more, and so is what has been changed
  all = K > 1 and call('MGET', unpack(KEYS))
  local formats, stay = all and {}
  while j < K do
    local k = KEYS[j + 1]
    if not areAlike then cost = ARGV[j + ${costAt}] + 0 end
    local s = all and not all[k] and all[j + 1] or redis.pcall('GET', k)
    read = s
    -- \`units\`: those charged so far; \`base\`: those of them that have left; \`kept\`: see \`strict-value.ts\`
    local born, mark, units, base, kept = now, -1, 0, 0, 0
    if s then
      kept = #s - ${tail}
      if kept < ${2 * size} or kept % ${size} ~= 0 then break end -- an error has no length
      local e, c, own, above, newest
      e, c, newest, base, born, above, own = up('>${entry}${entry}${last}', s, kept - ${2 * size - 1})
      if own ~= ${head} then break end
      newest, units = up('>${entry}', s)
      mark = above * ${low} + newest
      if mark > g then break end -- the clock has stepped back
      local most = ${parts} - g + mark
      if most < 0 then base, kept = units, ${size}
      else
        while (newest - e) % ${low} > most do
          base, kept = c, kept - ${size}
          e, c = up('>${entry}', s, kept - ${2 * size - 1})
        end
      end
    end
    local left = limit - (units - base) % 16777216 - cost
    if cost == 0 or left < 0 then break end
    if all then all[k] = true end
    units = (units + cost) % 16777216
    if mark == g then call('SETRANGE', k, '${size - 3}', pack('>I3', units))
    else
      local v
      if s then
        local format = all and formats[kept]
        if not format then
          format = '>${entry}c' .. kept .. '${last}'
          if all then formats[kept] = format end
        end
        v = pack(format, low, units, s, born, high, ${head})
      else v = pack('>${entry}${entry}${last}', low, units, 0, 0, born, high, ${head}) end
      ${isTest ? "call('SET', k, v)" : EXPIRING}
    end
    if K == 1 then return {left, reset, g, born} end
    if not reply then reply, o = {${ALL_ADMITTED}, reset, g}, 3 end
    reply[o + 1] = left
    o = o + 2
    reply[o] = born
    j = j + 1
  end
  if j == K then return reply end
  local admitted, lasts = reply or {}, o
  reply, o = {}, 0
  for q = 4, lasts, 2 do
    reply[o + 1], reply[o + 2], reply[o + 3], reply[o + 4] = admitted[q], reset, g, admitted[q + 1]
    o = o + 4
  end
end`
}

/** Sets the value until all units have left. Redis writes a number slower than a text. */
const EXPIRING = `
      stay = stay or reset + 1 .. ''
      call('SET', k, v, 'PX', stay)`
