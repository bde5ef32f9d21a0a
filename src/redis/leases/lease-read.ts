// The part of the script of leases that reads the value of a rule: see `lease-script.ts`.
import type { RemoteRule } from '../../remote/remote-rule.js'
import { KEY_FAULT } from '../../remote/reply-codes.js'
import { FAULT_OF, layoutOf } from '../packed/strict-value.js'
import { IS_OTHER_TYPE, LEASED, RECORD } from '../script-codes.js'
import { FORMAT, LeaseStatus } from './lease-message.js'

/**
 * The nodes that a value has records of at most. One more is decided strictly, and leases nothing: each record takes the
 * server a tenth of a microsecond in each message.
 */
export const MOST_RECORDS = 1_024

/** What differs between rules: their windows, and the layout of their values. */
export function constantsOf(rules: readonly RemoteRule[]): string {
  const names = 'shape, n, W, z, low, entry, high, tail, version'
  const each = rules.map((rule) => {
    const { size, low, entry, high, tail, version } = layoutOf(rule)
    const numbers = `${rule.shape}, ${rule.parts}, ${rule.windowMs}, ${size}, ${low}`
    return `${numbers}, '>${entry}', '${high}', ${tail}, ${version}`
  })
  if (each.length === 1) return `local ${names} = ${each[0]}`
  const cases = each.map((values, i) => `${i > 0 ? 'else' : ''}if i == ${i + 1} then ${names} = ${values}`)
  return `local ${names}\n${cases.join('\n')} end`
}

/**
 * Reads the value and the record of the node, and settles what the node has spent.
 *
 * `rest`: bytes of the entries; `kept`, `base`: see `strict-value.ts`. `mine`: where the record of this node begins;
 * `others`: the records of the others, if some are gone. `clock`: the time, or when the newest granule begins.
 * `fresh`: units to be charged in the present granule; `list` up to `l`: older granules and their units, the newest
 * first. `added`: all of them.
 */
export const READ = `
local k, limit, own, spent, known, least, ages = KEYS[i]
limit, own, spent, known, least, ages, at = up('>${FORMAT.rule}', m, at)
local s = redis.pcall('GET', k)
local born, mark, till, kept, base, sum, clock = now, -1, 0, 0, 0, 0, now
local rest, count, mine, others, held, last, lastHeld, ends, active = 0, 0, nil, nil, 0, 0, 0, nil, 1
local g = now * n / W
g = g - g % 1
if s then
  local kind, shaped, above, oldest = -1, nil, 0, 0
  rest = #s - tail -- an error has no length
  if rest >= 2 * z then
    born, above, shaped, kind = up('>I6' .. high .. 'I2I2', s, rest + 1)
    kind = shaped == shape and kind - version or -1
  end
  if kind == 1 or kind == ${LEASED + 1} then
    rest, kind = rest - 6, kind - 1
    till = up('>I6', s, rest + 1)
  end
  if kind == ${LEASED} then
    count = up('>I2', s, rest - 1)
    rest = rest - 2 - ${RECORD.size} * count
    if count > 0 then kind = 0 end
  end
  if kind ~= 0 or rest < 2 * z or rest % z ~= 0 then
    ${IS_OTHER_TYPE}
    ${FAULT_OF}
    if type(s) == 'string' then return {faultOf(s, shape)} end
    if not isOtherType(s) then call('GET', k) end -- raises it
    return {${KEY_FAULT.TYPE}}
  end
  local newest, units = up(entry, s)
  mark = above * low + newest
  if g < mark then -- the clock has stepped back
    g, clock = mark, mark * W / n
    clock = clock + -clock % 1
  end
  kept = rest
  local e, c
  e, c, oldest, base = up(entry .. sub(entry, 2), s, kept - 2 * z + 1)
  local most = n - g + mark
  if most < 0 then base, kept = units, z
  else
    while (newest - e) % low > most do
      base, kept = c, kept - z
      e, c = up(entry, s, kept - 2 * z + 1)
    end
  end
  sum = (units - base) % 16777216
  if count > 0 then
    local from, to, since = rest + 1, rest + ${RECORD.size} * count, (g - n) * W
    mine = find(s, id, from, true)
    while mine and (mine - from) % ${RECORD.size} ~= 0 do mine = find(s, id, mine + 1, true) end
    if mine and mine > to then mine = nil end
    local isGone = false
    for q = from, to, ${RECORD.size} do
      if q ~= mine then
        local units, ended = up('>I4I6', s, q + ${RECORD.held})
        if ended * n < since then isGone = true
        else
          held = held + units
          if ended >= now then active = active + 1 end
          if ended > last then last = ended end
          if units > 0 and ended > lastHeld then lastHeld = ended end
        end
      end
    end
    if isGone then
      others = ''
      for q = from, to, ${RECORD.size} do
        local ended = up('>I6', s, q + ${RECORD.held + 4})
        if q ~= mine and ended * n >= since then others = others .. sub(s, q, q + ${RECORD.size - 1}) end
      end
    end
    if mine then
      local lastSeq, lastSpent, _, ended = up('>${FORMAT.record}', s, mine + 8)
      if ended * n >= since then
        if seq <= lastSeq then return {${LeaseStatus.OLD}} end
        known, ends = lastSpent, ended
      end
    end
    if not ends and count >= ${MOST_RECORDS} then isFull, own = true, 0 end
  end
end
if till > now then isBlocked = true end
ends = ends or clock

local left, list, l, fresh = spent - known, nil, 0, 0
if left < 0 then left = 0 end
local added = left
if left > 0 and ages > 0 then
  list = {up(rep('>${FORMAT.age}', ages), m, at)}
  for j = 1, 2 * ages, 2 do
    local units, granule = list[j], (clock - list[j + 1]) * n / W
    granule = granule - granule % 1
    if units > left then units = left end
    left = left - units
    if granule >= g then fresh = fresh + units
    elseif granule < g - n then added = added - units
    elseif granule == list[l - 1] then list[l] = list[l] + units
    elseif units > 0 then
      list[l + 1], list[l + 2] = granule, units
      l = l + 2
    end
    if left == 0 then break end
  end
end
fresh = fresh + left
at = at + ${FORMAT.ageBytes} * ages
local free, refused = limit - sum - added - held - own, nil`
