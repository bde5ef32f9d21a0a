// The part of the script of leases that writes the value of a rule, and answers: see `lease-script.ts`.
import { BIRTH_RANGE_MS } from '../../remote/reply-codes.js'
import { LEASED, RECORD } from '../script-codes.js'
import { FORMAT } from './lease-message.js'

/** Writes the value, and what the reply says of the rule. */
export const WRITE = `
own, free = own + leased, free - leased
if extends and clock + T > ends then ends = clock + T end
local q, newest, top, front = 1, mark, 0, ''
if added > 0 or kept <= z then -- one without units has the newest granule
  -- the entries of both, in order, until only old ones follow
  local granule, units, j, o, left = g, fresh, 1, 0, added
  local out = {nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil}
  if fresh == 0 and l > 0 then granule, units, j = list[1], list[2], 3 end
  if granule > mark then newest = granule end
  if added > 0 then top = granule end
  repeat
    local e, c = -1, base
    if q + z <= kept then
      e, c = up(entry, s, q)
      e = mark - (mark - e) % low
    end
    c = c + left
    if e >= granule then q = q + z end
    if e > granule then out[o + 1] = e % low
    else
      out[o + 1], left = granule % low, left - units
      if j > l then granule = nil
      else granule, units, j = list[j], list[j + 1], j + 2 end
    end
    out[o + 2] = c % 16777216
    o = o + 2
  until not granule
  front = pack(rep(entry, o / 2), unpack(out, 1, o))
end
if kept == 0 then front = front .. pack(entry, 0, 0) end
local first, past = rest + 1, rest + ${RECORD.size} * count
local own1, others1, others2 = '', others or '', ''
if not isFull then own1 = pack('>c8${FORMAT.record}', id, seq, spent, own, ends) end
if count > 0 and not others then
  if mine then
    if mine > first then others1 = sub(s, first, mine - 1) end
    if mine + ${RECORD.size} < past then others2 = sub(s, mine + ${RECORD.size}, past) end
  else others1 = sub(s, first, past) end
end
count = (#own1 + #others1 + #others2) / ${RECORD.size}
local above = newest % low
above = (newest - above) / low
local v
if till > 0 then v = pack('>I2I6I6' .. high .. 'I2I2', count, till, born, above, shape, version + ${LEASED + 1})
else v = pack('>I2I6' .. high .. 'I2I2', count, born, above, shape, version + ${LEASED}) end
v = front .. (s and sub(s, q, kept) or '') .. own1 .. others1 .. others2 .. v
-- what counts longest, as a granule; then the time in which it leaves
local stay = (ends > last and ends or last) * n / W
stay = stay - stay % 1
if stay < newest then stay = newest end
stay = (stay + n + 1) * W / n
stay = stay + -stay % 1
if isTest or till == 281474976710655 then call('SET', k, v)
else
  if stay < till then stay = till end
  stay = stay - now + 1
  if born >= ${BIRTH_RANGE_MS} then -- one that has got less stays as long as before: other processes must see its birth
    local was = call('PTTL', k)
    if was > stay then stay = was end
  end
  call('SET', k, v, 'PX', stay)
end

if own > 0 and ends > lastHeld then lastHeld = ends end
if lastHeld > 0 then
  lastHeld = lastHeld * n / W
  lastHeld = lastHeld - lastHeld % 1
  if lastHeld > top then top = lastHeld end
end
if sum > 0 and top < mark then
  local e, c, p = 1, nil, 1
  local _, units = up(entry, s)
  repeat
    e, p = p, p + z
    _, c = up(entry, s, p)
  until c ~= units
  e = up(entry, s, e)
  e = mark - (mark - e) % low
  if e > top then top = e end
end
local reset = 0
if top > 0 then
  reset = (top + n + 1) * W / n
  reset = reset + -reset % 1 - now
end
if refused and refused > free then
  -- when the first units leave, or a lease ends
  local oldest, first = l > 0 and list[l - 1] or fresh > 0 and g or nil, nil
  local records = own1 .. others1 .. others2
  for p = kept - 2 * z + 1, 1, -z do
    local e, c = up(entry, s, p)
    if c ~= base then
      e = mark - (mark - e) % low
      if not oldest or e < oldest then oldest = e end
      break
    end
  end
  if oldest then
    first = (oldest + n + 1) * W / n
    first = first + -first % 1 - now
  end
  local granuleMs = W / n
  granuleMs = granuleMs + -granuleMs % 1
  for p = ${RECORD.held + 1}, #records, ${RECORD.size} do
    local units, ended = up('>I4I6', records, p)
    if units > 0 then
      ended = ended - now
      if ended < granuleMs then ended = granuleMs end
      if not first or ended < first then first = ended end
    end
  end
  if first and first > wait and wait >= 0 then wait = first end
end
if free < 0 then free = 0 end
if till > now then
  free = 0
  if till == 281474976710655 then reset, till = -1, -1
  elseif reset < till - now then reset = till - now end
  if till < 0 then wait = -1
  elseif wait >= 0 and till - now > wait then wait = till - now end
else till = 0 end
if tills then tills[i] = till end
if marks then marks[i] = g end
reply[o + 1], reply[o + 2], reply[o + 3] = born, free, reset
o = o + 3`

export const REPLY = `
if tills then
  for r = 1, R do reply[o + r] = tills[r] end
  o = o + R
end
if marks then
  local isRefused = false
  for r = 1, R do reply[o + r] = marks[r] end
  o = o + R + 1
  for d = 1, requests do
    if admitted[d] == 0 then isRefused = true end
    reply[o + d] = admitted[d]
  end
  if isRefused and wait == 0 then wait = 1 end
  reply[o] = isRefused and wait or 0
end
return reply
`
