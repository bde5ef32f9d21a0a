// The script that decides on Redis. Redis runs a script as one step, so a decision sees no half of another. The rules
// stand in it as constants, so that a call sends their limits only: a server holds one script for each set of rules.
//
// `strict-value.ts` says what the value of a key is.
//
// All numbers in the script stay below 2^53, so that a double holds them: `checkRemoteRule` bounds windows and granules.
import { COUNT_REFUSED, SHADOW } from '../../core/verdict.js'
import { ONE_FLAG, type RemoteRule } from '../../remote/remote-rule.js'
import { CHANGED_FIELDS, KEY_FAULT, NO_MARK, Verdict } from '../../remote/reply-codes.js'
import { flagIn, IS_OTHER_TYPE, RECORD, REFUNDED } from '../script-codes.js'
import { BOUNDS, calendarsBefore } from './calendar-bounds.js'
import { shortcutOf } from './strict-shortcut.js'
import { layoutOf, VALUE_FUNCTIONS } from './strict-value.js'

/**
 * The source of the script for these rules, and for the time of the server or a test.
 *
 * KEYS: for each key, one of each rule. ARGV: the operation, the limit of each rule, in a test the time in milliseconds,
 * and the bounds of the periods of each rule with a calendar (`calendar-bounds.ts`); then the cost in each rule of each key, then the arguments of the operation. The first three operations
 * take the costs of one key for those of each.
 *
 * Operations, of one key except the first four: c check, t check without charging a refusal, p peek, a penalize for
 * what was used ms ago (for each key; one key may stand there several times), n penalize, r refund by key (of the cost),
 * g give back a decision (a mark and a birth for each rule, '' where it charged nothing), b block for ms
 * (-1: for ever), u unblock, x clear, w units used since ms ago (index of the rule).
 */
export function strictScript(rules: readonly RemoteRule[], isTest: boolean): string {
  const [first] = rules
  const isPlain = rules.length === 1 && first!.flags === 0 // a sliding window without flags
  return [
    DECLARATIONS,
    isTest ? `local now = ARGV[${rules.length + 2}] + 0` : TIME,
    `local R, A, isTest = ${rules.length}, ${firstCost(rules, isTest) - 1}, ${isTest}`,
    'local K = #KEYS / R',
    isPlain ? shortcutOf(first!, isTest) : '',
    rulesOf(rules, isTest),
    VALUE_FUNCTIONS,
    SCRIPT,
  ].join('\n')
}

/** The index of the first argument after the limits, the time and the bounds. */
const firstCost = (rules: readonly RemoteRule[], isTest: boolean): number =>
  rules.length + (isTest ? 3 : 2) + BOUNDS * calendarsBefore(rules, rules.length)

const DECLARATIONS = `
local call, up, pack, floor, ceil, sub = redis.call, struct.unpack, struct.pack, math.floor, math.ceil, string.sub
local op = ARGV[1]
local j, reply, o = 0, nil, 0
local all, read = false, nil -- the values of all keys, and by name which of them have changed; the last one that was read`

/** The time of the server in milliseconds. */
export const TIME = `
local t = call('TIME')
local now = t[2] / 1000
now = t[1] * 1000 + now - now % 1`

/**
 * `ruleAt(i)`: flags, shape, limit, n, window in milliseconds, bytes of an entry. Of a calendar, whose windows are known
 * by their ends, the window is 0, and more follows: the longest period, and before which argument its bounds are.
 *
 * `periodIn(at)`: the bounds of the present period.
 */
const rulesOf = (rules: readonly RemoteRule[], isTest: boolean): string => `
local function ruleAt(i)
${rules.map((rule, i) => `if i == ${i + 1} then return ${constantsOf(rules, rule, i, isTest)} end`).join('\n')}
end
local function periodIn(at)
  local from = ARGV[at + 1] + 0
  for b = at + 2, now < from and 0 or at + ${BOUNDS} do
    local to = ARGV[b] + 0
    if now < to then return from, to end
    from = to
  end
end`

function constantsOf(rules: readonly RemoteRule[], rule: RemoteRule, index: number, isTest: boolean): string {
  const { flags, shape, parts, windowMs, calendar } = rule
  const own = `${flags}, ${shape}, ARGV[${index + 2}] + 0, ${parts}`
  const { size } = layoutOf(rule)
  if (calendar === undefined) return `${own}, ${windowMs}, ${size}`
  const at = rules.length + (isTest ? 2 : 1) + BOUNDS * calendarsBefore(rules, index)
  return `${own}, 0, ${size}, ${windowMs}, ${at}`
}

const SCRIPT = `
reply = reply or {}
${IS_OTHER_TYPE}
${REFUNDED}
local asks = op == 'c' or op == 't' or op == 'p'

-- time units of a bucket at ms, and the first ms at which that many have passed
local function unitsAt(ms, n, W) local w = floor(ms / W); return w * n + floor((ms - w * W) * n / W) end
local function msOf(units, n, W) local w = floor(units / n); return w * W + ceil((units - w * n) * W / n) end
-- units of a full bucket by a limit that does not divide them: see \`fullBy\`
local function fullBy(limit, n)
  local token = ceil(n / limit)
  local full = limit * token
  return full - token < n and full or n
end

-- that of a fixed window or a bucket. Above a bucket's mark: see MADE_LESS
local function saveMeter(k, s, shape, born, mark, till, units, emptyMs)
  save(k, s, 6, shape, born, mark, till, pack('>I3I3', mark % LOW[6], units), emptyMs, mark >= MADE_LESS)
end

-- when so many units have left a sliding window to which some are charged in granule g
local function leaves(s, z, kept, base, mark, g, left, n, W, records, charged)
  local at = g
  if records then
    local list = listOf(s, z, kept, base, mark)
    list[#list + 1] = {g, charged}
    for q = ${RECORD.held + 1}, #records, ${RECORD.size} do
      local units, ends = up('>I4I6', records, q)
      list[#list + 1] = {floor(ends * n / W), units}
    end
    table.sort(list, function(x, y) return x[1] < y[1] end)
    for _, granule in ipairs(list) do
      left, at = left - granule[2], granule[1]
      if left <= 0 then break end
    end
    return endOf(at, n, W) - now
  end
  for q = kept - 2 * z + 1, 1, -z do
    local e, c = up(ENTRY[z], s, q)
    if (c - base) % UNITS >= left then at = mark - (mark - e) % LOW[z]; break end
  end
  return endOf(at, n, W) - now
end

local costs = A
local step = asks and #ARGV == A + R and 0 or R -- arguments from the costs of a key to those of the next one
for j = j, K - 1 do
  local st, refused, fault = {}, false, nil
  for i = 1, R do
    local flags, shape, limit, n, W, z, period, at = ruleAt(i)
    local alg = flags % 16
    local k, cost = KEYS[j * R + i], ARGV[costs + j * step + i] + 0
    local s = read or all and not all[k] and all[j + 1] or redis.pcall('GET', k)
    read = nil
    if all then all[k] = true end
    if type(s) == 'table' then
      if not isOtherType(s) then call('GET', k) end -- raises it
      fault = ${KEY_FAULT.TYPE}
      break
    end
    local bytes, born, mark, a, till, count, sum = 0, now, 0, 0, 0, 0, 0
    local kept, base, g, need, free, full, from, to = 0, 0, 0, 0, 0, limit, nil, nil
    if period then
      from, to = periodIn(at)
      if not from then fault = ${KEY_FAULT.TIME}; break end
    end
    local held, last, records, lastHeld = 0, 0, nil, 0
    if s then
      bytes, born, mark, a, till, count = parse(s, z, shape, alg == 0)
      if not bytes then fault = born; break end
    end
    -- g: the place of a charge now; sum: used, in units of the algorithm; need: of the cost; free: left
    if alg == 0 then
      g = floor(now * n / W)
      if s then
        if g < mark then g = mark end
        kept, base = inWindow(s, z, bytes, n - (g - mark))
        sum = (a - base) % UNITS
        if count > 0 then held, last, records, lastHeld = leasesOf(s, bytes, count, g, n, W) end
      end
      need, free = cost, limit - sum - held
    elseif alg == 1 then
      g = mark
      -- the mark of a calendar is the end of the period. Of ends that differ, the latest holds: see \`isOfPeriod\`
      if period and mark - period / 2 >= from then g = max(mark, to) end
      if s and a > 0 and now < g + W then sum = a
      elseif period then g = to
      else g = floor(now / n) * n end
      need, free = cost, limit - sum
    else
      base = mark - mark % MADE_LESS
      mark = mark - base
      g = max(now, mark)
      if s then sum = max(0, unitsAt(mark, n, W) + a - unitsAt(g, n, W)) end
      full = n % limit == 0 and n or fullBy(limit, n)
      need, free = ceil(cost * full / limit), full - sum
    end
    local verdict, wait = ${Verdict.ADMITTED}, 0
    if asks and ((cost > 0 and need > free) or till > now) then
      verdict = ${Verdict.REFUSED}
      if cost > limit or till == FOREVER then wait = -1
      else
        if cost > 0 and need > free then
          if alg == 0 then wait = leaves(s, z, kept, base, mark, g, need - free, n, W, records, 0)
          elseif alg == 1 then wait = g + W - now
          else wait = msOf(unitsAt(g, n, W) + need - free, n, W) - now end
        end
        if till - now > wait then wait = till - now end
      end
      if ${flagIn('flags', ONE_FLAG * SHADOW)} then verdict = ${Verdict.SHADOWED} else refused = true end
    end
    st[i] = {s, born, mark, a, till, kept, base, sum, g, need, verdict, wait, k, shape, limit, n, W, alg, flags, cost, z, full, held, last, records, lastHeld, period, from, to}
  end

  if fault then
    o = o + 1
    reply[o] = fault
  elseif op == 'w' then
    local x, c = st[ARGV[costs + #KEYS + 1] + 0], 0
    local s, n, W, alg = x[1], x[16], x[17], x[18]
    if alg == 0 then
      local from = floor((now - x[20]) * n / W)
      for _, granule in ipairs(listOf(s, x[21], x[6], x[7], x[3])) do
        if granule[1] >= from then c = c + granule[2] end
      end
    elseif alg == 1 then c = x[8]
    else c = ceil(x[8] * x[15] / x[22]) end
    o = o + 1
    reply[o] = c
  else
    local agedMs = op == 'a' and ARGV[costs + #KEYS + 1 + j] + 0 or 0
    local charges = op == 'n' or op == 'a' or (op == 'c' or op == 't') and not refused
    for i = 1, R do
      local s, born, mark, a, till, kept, base, sum, g, need, verdict, wait, k, shape, limit, n, W, alg, flags, cost, z, full, held, last, records, lastHeld, period, from, to = unpack(st[i], 1, 29)
      local unmarked = asks and till > now and ${NO_MARK.BLOCKED} or ${NO_MARK.NOTHING}
      local receipt, result, ms, newest = unmarked, 0, 0, nil
      local isOver = verdict ~= ${Verdict.ADMITTED}
      local counts = charges and verdict ~= ${Verdict.SHADOWED}
        or op == 'c' and isOver and ${flagIn('flags', ONE_FLAG * COUNT_REFUSED)} and cost <= limit
      if alg == 2 and s and (op == 'b' or op == 'u') then base = lessened(base) end
      if op == 'a' and period then counts = g < to or now - agedMs >= from
      elseif op == 'a' and alg == 1 and now - agedMs < g then
        -- in the window before; if there is no window now, that one may last still
        if sum == 0 then g = floor((now - agedMs) / n) * n end
        counts = (now - agedMs >= g or n < W and agedMs < W) and now < g + W
      end
      if counts and cost > 0 then
        if alg == 2 and s and sum == 0 then base = (base + FILLED) % MOST_FILLED end -- what was charged before is gone
        receipt = g + (alg == 2 and base or 0)
        if isOver then -- it must wait for its own charge, too
          receipt = unmarked
          local later
          if alg == 0 then later = leaves(s, z, kept, base, mark, g, min(sum + need, UNITS - 1) + held + need - limit, n, W, records, need)
          elseif alg == 1 then later = g + W - now
          else later = msOf(unitsAt(g, n, W) + min(sum + need, 3 * n) + need - full, n, W) - now end
          if wait >= 0 then wait = max(wait, later) end
        end
        if alg == 0 then need = min(need, UNITS - 1 - sum) end
        if op == 'a' and alg == 0 and floor((now - agedMs) * n / W) < g then
          -- into its own granule
          local old, list = floor((now - agedMs) * n / W), listOf(s, z, kept, base, mark)
          local at = #list
          while at > 0 and list[at][1] > old do at = at - 1 end
          if at > 0 and list[at][1] == old then list[at][2] = list[at][2] + need
          else table.insert(list, at + 1, {old, need}) end
          if g - old <= n then save(k, s, z, shape, born, g, till, entriesOf(list, z, g), endOf(max(g, last), n, W), nil, records)
          else receipt = -1 end
        elseif alg == 0 then
          sum = sum + need
          a = (a + need) % UNITS
          if s and mark == g then call('SETRANGE', k, z - 3, pack('>I3', a))
          else save(k, s, z, shape, born, g, till, entriesWith(s, z, kept, g, a), endOf(max(g, last), n, W), nil, records) end
          mark = g
        elseif alg == 1 then
          sum = min(sum + need, 2097151)
          if s and mark == g then call('SETRANGE', k, 3, pack('>I3', sum))
          else saveMeter(k, s, shape, born, g, till, sum, g + W) end
        else
          sum = min(sum + need, 3 * n)
          saveMeter(k, s, shape, born, g + base, till, sum, msOf(unitsAt(g, n, W) + sum, n, W))
        end
      elseif (op == 'r' or op == 'g') and s and sum > 0 then
        local whole, mine = min(cost, sum), nil
        local left = whole
        if op == 'g' then
          local at = costs + #KEYS + 2 * i - 1
          mine = ARGV[at]
          if mine == '' or ARGV[at + 1] + 0 ~= born then left = 0 else mine = mine + 0 end
        else born = refunded(born) end
        local given = 0
        if left == 0 then given = 0
        elseif alg == 0 then
          local list = listOf(s, z, kept, base, mark)
          for _, granule in ipairs(list) do
            if not mine or mine == granule[1] then
              local m = min(granule[2], left)
              granule[2], left = granule[2] - m, left - m
              if m > 0 and not mine then newest, ms = m, max(0, now - ceil((granule[1] + 1) * W / n)) end
            end
          end
          given = whole - left
          sum = sum - given
          if given > 0 then save(k, s, z, shape, born, mark, till, entriesOf(list, z, mark), endOf(max(mark, last), n, W), nil, records) end
        elseif alg == 1 then
          if not mine or mine == g or period and math.abs(mine - g) < period / 2 then given = min(sum, cost) end
          if not mine then newest = given end
          sum = sum - given
          if given > 0 then saveMeter(k, s, shape, born, g, till, sum, g + W) end
        else
          local less = min(sum, need)
          if mine and floor(mine / FILLED) ~= floor(base / FILLED) then less = 0 end
          sum = sum - less
          base = lessened(base)
          given = less > 0 and (mine and cost or floor(less * limit / full)) or 0
          if less > 0 then saveMeter(k, s, shape, born, g + base, till, sum, msOf(unitsAt(g, n, W) + sum, n, W)) end
        end
        result = given
      elseif op == 'b' or op == 'u' then
        if op == 'u' then
          if till > now then result = 1 end
          till = 0
        else till = cost < 0 and FOREVER or min(now + cost, FOREVER - 1) end
        if op == 'b' or s then
          if alg == 0 then
            local isEmpty = not s or g - mark > n
            local entries = isEmpty and entriesWith(s, z, kept, g, a) or sub(s, 1, kept)
            save(k, s, z, shape, born, isEmpty and g or mark, till, entries, endOf(max(g, last), n, W), nil, records)
          elseif alg == 1 then saveMeter(k, s, shape, born, g, till, sum, g + W)
          else saveMeter(k, s, shape, born, g + base, till, sum, msOf(unitsAt(g, n, W) + sum, n, W)) end
        end
      elseif op == 'x' and s then
        -- It stays until its charges would have left: so other processes see the birth that they know.
        born = refunded(born)
        if alg == 2 then mark = mark + base end
        local entries = alg == 0 and entriesOf({}, z, mark) or pack(ENTRY[z], mark % LOW[z], 0)
        call('SET', k, entries .. tailOf(z, shape, born, mark, 0, records), 'KEEPTTL')
        if till == FOREVER and not isTest then call('PEXPIRE', k, max(3 * (period or W), endOf(last, n, W) - now + 1)) end
      end
      if asks then
        local left, reset = limit - sum - held, 0
        if alg == 0 then
          local newest = lastHeld
          if sum > 0 then newest = max(newest, counts and need > 0 and g or newestOf(s, z, st[i][3])) end
          if sum + held > 0 then reset = endOf(newest, n, W) - now end
        elseif alg == 1 then if sum > 0 then reset = g + W - now end
        else
          left = floor((full - sum) * limit / full)
          if sum > 0 then reset = msOf(unitsAt(g, n, W) + sum, n, W) - now end
        end
        if till > now then left, reset = 0, till == FOREVER and -1 or max(reset, till - now) end
        if verdict == ${Verdict.ADMITTED} then
          reply[o + 1], reply[o + 2], reply[o + 3], reply[o + 4] = max(left, 0), reset, receipt, born
          o = o + 4
        else
          reply[o + 1], reply[o + 2], reply[o + 3], reply[o + 4], reply[o + 5], reply[o + 6] =
            verdict, max(left, 0), wait, reset, receipt, born
          o = o + 6
        end
      else
        if receipt >= 0 then
          if alg == 0 then ms = endOf(g, n, W) - now
          elseif alg == 1 then ms = g + W - now
          else ms = msOf(unitsAt(g, n, W) + sum, n, W) - now end
        end
        reply[o + 1], reply[o + 2], reply[o + 3], reply[o + 4], reply[o + 5] = result, newest or receipt, born, ms, sum
        o = o + ${CHANGED_FIELDS}
      end
    end
  end
end
return reply
`
