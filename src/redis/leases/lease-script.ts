// The script that leases units on Redis: one message of a node, about one key, is one call. It settles what the node has
// spent, decides the requests that wait, and leases. `strict-value.ts` says what the value of a key is, and so which
// units a strict limiter sees.
//
// A unit counts from its grant on: as held in the record of its node, then, when the node has told that it is spent, in
// the granule in which it was. So any window has at most the limit: of the units spent in it, take the one that was
// granted last. All others were granted before, and counted then.
//
//   1. A message is ignored if a later one of its node has come before it.
//   2. What the node says that it holds replaces what the record has: what was granted in a lost reply comes back.
//   3. Units are fresh if the node has spent them since the last message that came. The newest ages are theirs: after a
//      lost reply the node tells of older ones again.
//   4. A lease ends T after the last message that has asked for units, and its units count for a window after that.
//   5. A blocked key leases nothing, and no lease of it is made longer. So a block reaches all nodes within T.
//
// If the clock steps back, the lease and the ages begin where it has been: see the newest granule in `strict-value.ts`.
//
// A message is binary (`lease-message.ts`), because Redis takes longer to read ten arguments than to decide.
import type { RemoteRule } from '../../remote/remote-rule.js'
import { KEY_FAULT } from '../../remote/reply-codes.js'
import { TIME } from '../packed/strict-script.js'
import { layoutOf, VALUE_FUNCTIONS } from '../packed/strict-value.js'
import { IS_OTHER_TYPE, RECORD } from '../script-codes.js'
import { FORMAT, LeaseStatus } from './lease-message.js'

/**
 * The nodes that a value has records of at most. One more is decided strictly, and leases nothing: each record takes the
 * server a tenth of a microsecond in each message.
 */
export const MOST_RECORDS = 1_024

/**
 * The source of the script for sliding windows, and for the time of the server or a test.
 *
 * KEYS: one of each rule. ARGV: the message, and in a test the time in milliseconds.
 *
 * The reply is `KEY_FAULT` of a value that is none; or `LeaseStatus.OLD`; or status, the time, the end of the lease,
 * leased units, nodes with a lease, when to ask again; for each rule birth, granule, remaining, reset, end of a block;
 * and for each request 1 or 0.
 */
export function leaseScript(rules: readonly RemoteRule[], isTest: boolean): string {
  return [
    DECLARATIONS,
    isTest ? 'local now = ARGV[2] + 0' : TIME,
    `local R, isTest = ${rules.length}, ${isTest}`,
    rulesOf(rules),
    VALUE_FUNCTIONS,
    IS_OTHER_TYPE,
    SCRIPT,
  ].join('\n')
}

const DECLARATIONS = `
local call, up, pack, floor, ceil, sub = redis.call, struct.unpack, struct.pack, math.floor, math.ceil, string.sub
local find, rep = string.find, string.rep`

/** `ruleAt(i)`: shape, n, window in milliseconds, bytes of an entry. */
const rulesOf = (rules: readonly RemoteRule[]): string => `
local function ruleAt(i)
${rules.map((rule, i) => `if i == ${i + 1} then return ${rule.shape}, ${rule.parts}, ${rule.windowMs}, ${layoutOf(rule).size} end`).join('\n')}
end`

const SCRIPT = `
-- where the record with this id begins
local function indexOf(id, s, bytes, count)
  local p, to = find(s, id, bytes + 1, true), bytes + ${RECORD.size} * count
  while p and p <= to do
    if (p - bytes - 1) % ${RECORD.size} == 0 then return p end
    p = find(s, id, p + 1, true)
  end
end

-- the entries of a value to which units are added. \`list\` from \`i\` on: granule, units, the newest first, none of them
-- older than the window; \`added\`: all of them
local function entriesPlus(s, z, kept, base, mark, list, i, added)
  local out, o, q = {}, 0, 1
  while list[i] do
    local granule, e, c = list[i], -1, base
    if q + z <= kept then
      e, c = up(ENTRY[z], s, q)
      e = mark - (mark - e) % LOW[z]
    end
    local newest = max(e, granule)
    out[o + 1], out[o + 2] = newest % LOW[z], (c + added) % UNITS
    o = o + 2
    if e == newest then q = q + z end
    if granule == newest then added, i = added - list[i + 1], i + 2 end
  end
  local new = pack(rep(ENTRY[z], o / 2), unpack(out))
  return new .. (kept == 0 and pack(ENTRY[z], 0, 0) or sub(s, q, kept))
end

-- when the first units leave, or a lease ends
local function firstOf(s, z, kept, base, mark, list, records, n, W)
  local oldest, first = list[#list] > 0 and list[#list - 1] or nil, nil
  for q = kept - 2 * z + 1, 1, -z do
    local e, c = up(ENTRY[z], s, q)
    if c ~= base then
      e = mark - (mark - e) % LOW[z]
      if not oldest or e < oldest then oldest = e end
      break
    end
  end
  if oldest then first = endOf(oldest, n, W) - now end
  for q = ${RECORD.held + 1}, #records, ${RECORD.size} do
    local units, ends = up('>I4I6', records, q)
    if units > 0 then
      ends = max(ceil(W / n), ends - now)
      first = min(first or ends, ends)
    end
  end
  return first or 1
end

local m = ARGV[1]
local T, id, seq, wants, requests, at = up('>${FORMAT.head}', m)
local st, isBlocked, isFull = {}, false, false
for i = 1, R do
  local shape, n, W, z = ruleAt(i)
  local k, limit, told, spent, known, least, ages = KEYS[i]
  limit, told, spent, known, least, ages, at = up('>${FORMAT.rule}', m, at)
  local s = redis.pcall('GET', k)
  if type(s) == 'table' then
    if not isOtherType(s) then call('GET', k) end -- raises it
    return {${KEY_FAULT.TYPE}}
  end
  local bytes, born, mark, a, till, count, sum = 0, now, 0, 0, 0, 0, 0
  local kept, base, g, clock, ends = 0, 0, floor(now * n / W), now, nil
  local held, last, records, lastHeld, active = 0, 0, nil, 0, 0
  if s then
    bytes, born, mark, a, till, count = parse(s, z, shape, true)
    if not bytes then return {born} end
    if g < mark then g, clock = mark, ceil(mark * W / n) end
    kept, base = inWindow(s, z, bytes, n - (g - mark))
    sum = (a - base) % UNITS
    if count > 0 then
      local mine = indexOf(id, s, bytes, count)
      if mine then
        local lastSeq, lastSpent, _, ended = up('>${FORMAT.record}', s, mine + 8)
        if floor(ended * n / W) >= g - n then
          if seq <= lastSeq then return {${LeaseStatus.OLD}} end
          known, ends = lastSpent, ended
        end
      end
      held, last, records, lastHeld, active = leasesOf(s, bytes, count, g, n, W, mine)
    end
  end
  if till > now then isBlocked = true end
  if not ends and records and #records >= ${MOST_RECORDS * RECORD.size} then isFull = true end
  -- fresh units by granule, the newest first
  local left, added = max(0, spent - known), 0
  local list, l, past = {g, 0}, 2, at + ${FORMAT.ageBytes} * ages
  while left > 0 and at < past do
    local units, ageMs
    units, ageMs, at = up('>${FORMAT.age}', m, at)
    units = min(units, left)
    left = left - units
    local granule = min(floor((clock - ageMs) * n / W), g)
    if units > 0 and granule >= g - n then
      if granule ~= list[l - 1] then
        list[l + 1], list[l + 2] = granule, 0
        l = l + 2
      end
      list[l] = list[l] + units
      added = added + units
    end
  end
  at = past
  list[2] = list[2] + left
  added = added + left
  if isFull then told = 0 end
  st[i] = {
    s = s, z = z, shape = shape, born = born, mark = mark, till = till, kept = kept, base = base, sum = sum, g = g,
    n = n, W = W, list = list, added = added, records = records, last = last, lastHeld = lastHeld, active = active + 1,
    ends = ends or clock, clock = clock, spent = spent, least = least, own = told,
    free = limit - sum - added - held - told,
  }
end

-- the requests that wait, in their order
local admitted = {}
for d = 1, requests do
  local from, isAdmitted = at, not isBlocked
  for i = 1, R do
    local cost
    cost, at = up('>I4', m, at)
    if cost > 0 and cost > st[i].free then isAdmitted = false end
  end
  at = from
  for i = 1, R do
    local x, cost = st[i], nil
    cost, at = up('>I4', m, at)
    if isAdmitted then
      x.list[2], x.added, x.free = x.list[2] + cost, x.added + cost, x.free - cost
    else x.refused = min(x.refused or cost, cost) end
  end
  admitted[d] = isAdmitted and 1 or 0
end

local extends, leased = wants > 0 and not isBlocked and not isFull, 0
if extends then
  leased = wants
  for i = 1, R do
    local x = st[i]
    leased = min(leased, x.free, max(x.least, floor(x.free / (2 * x.active))))
  end
  leased = max(0, leased)
end

local reply, o, lasts, wait = {extends and ${LeaseStatus.LEASED} or ${LeaseStatus.SETTLED}, now, 0, leased, st[1].active, 0}, 6, nil, 0
for i = 1, R do
  local x = st[i]
  local s, z, mark, kept, base, list, g, n, W, till = x.s, x.z, x.mark, x.kept, x.base, x.list, x.g, x.n, x.W, x.till
  x.own, x.free = x.own + leased, x.free - leased
  local ends = extends and max(x.ends, x.clock + T) or x.ends
  local granule = floor(ends * n / W)
  local records = x.records or ''
  if not isFull then records = pack('>c8${FORMAT.record}', id, seq, x.spent, x.own, ends) .. records end
  local from = (list[2] > 0 or #list == 2 and kept <= z) and 1 or 3
  local newest = max(mark, list[from] or 0)
  local entries = list[from] and entriesPlus(s, z, kept, base, mark, list, from, x.added) or sub(s, 1, kept)
  save(KEYS[i], s, z, x.shape, x.born, newest, till, entries, endOf(max(newest, x.last, granule), n, W), false,
    records ~= '' and records or nil)
  lasts = min(lasts or ends, ends)
  local reset, left = 0, max(0, x.free)
  if x.own > 0 then newest = max(x.lastHeld, granule) else newest = x.lastHeld end
  if x.added > 0 then newest = max(newest, list[from]) end
  if x.sum > 0 then newest = max(newest, newestOf(s, z, mark)) end
  if newest > 0 then reset = endOf(newest, n, W) - now end
  if x.refused and x.refused > x.free then
    wait = max(wait, firstOf(s, z, kept, base, mark, list, records, n, W))
  end
  if till > now then
    left, reset = 0, max(reset, till - now)
    if till == FOREVER then reset, till = -1, -1 end
    if x.refused then wait = (till < 0 or wait < 0) and -1 or max(wait, till - now) end
  else till = 0 end
  reply[o + 1], reply[o + 2], reply[o + 3], reply[o + 4], reply[o + 5] = x.born, g, left, reset, till
  o = o + 5
end
for d = 1, requests do
  if admitted[d] == 0 and wait == 0 then wait = 1 end
  reply[o + d] = admitted[d]
end
reply[3], reply[6] = lasts, wait
return reply
`
