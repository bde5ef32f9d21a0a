import type { RemoteRule } from './remote-rule.js'
import { layoutOf } from './strict-value.js'

/**
 * A check by one sliding window without flags. It ends before a key that is out of the ordinary. `x - x % 1` is floor
 * and `x + -x % 1` is ceil, without a call. What keys of one call have in common is made once: many are charged in the
 * same granule, and have as many older ones.
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
  local here = now * ${parts} / ${windowMs}
  here = here - here % 1
  -- MGET takes a value of another type for none: what is not there is asked once more, and so is what has been changed
  all = K > 1 and call('MGET', unpack(KEYS))
  local formats, resetOf, reset, evenOf, stay = all and {}
  while j < K do
    local k, g = KEYS[j + 1], here
    if not areAlike then cost = ARGV[j + ${costAt}] + 0 end
    local s = all and not all[k] and all[j + 1] or redis.pcall('GET', k)
    read = s
    -- \`units\`: those charged so far; \`base\`: those of them that have left; \`kept\`: see \`entriesWith\`
    local born, mark, units, base, kept = now, -1, 0, 0, 0
    if s then
      kept = #s - ${tail}
      if kept < ${2 * size} or kept % ${size} ~= 0 then break end -- an error has no length
      local e, c, own, high, newest
      e, c, newest, base, born, high, own = up('>${entry}${entry}${last}', s, kept - ${2 * size - 1})
      if own ~= ${head} then break end
      newest, units = up('>${entry}', s)
      mark = high * ${low} + newest
      if g < mark then g = mark end
      local most = ${parts} - (g - mark)
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
    if g ~= resetOf then
      resetOf, reset = g, (g + ${parts + 1}) * ${windowMs} / ${parts}
      reset = reset + -reset % 1 - now
    end
    if mark == g then call('SETRANGE', k, '${size - 3}', pack('>I3', units))
    else
      local v
      local newest = g % ${low}
      local high = (g - newest) / ${low}
      if s then
        local format = all and formats[kept]
        if not format then
          format = '>${entry}c' .. kept .. '${last}'
          if all then formats[kept] = format end
        end
        v = pack(format, newest, units, s, born, high, ${head})
      else v = pack('>${entry}${entry}${last}', newest, units, 0, 0, born, high, ${head}) end
      ${isTest ? "call('SET', k, v)" : expiring(parts, windowMs)}
    end
    if K == 1 then return {left, reset, g, born} end
    reply = reply or {}
    reply[o + 1] = left
    reply[o + 2] = reset
    reply[o + 3] = g
    o = o + 4
    reply[o] = born
    j = j + 1
  end
  if j == K then return reply end
end`
}

/** Sets the value and its end, which is the same in an even granule and the next one: see `endOf`. */
const expiring = (parts: number, windowMs: number): string => `
      local even = g - g % 2
      if mark >= even then call('SET', k, v, 'KEEPTTL')
      else
        if even ~= evenOf then
          local endMs = (even + ${parts + 2}) * ${windowMs} / ${parts}
          evenOf, stay = even, endMs + -endMs % 1 - now + 1 .. '' -- Redis writes a number slower
        end
        call('SET', k, v, 'PX', stay)
      end`
