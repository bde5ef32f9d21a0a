// The script that decides on Redis. Redis runs a script as one step, so a decision sees no half of another. The rules
// stand in it as constants, so that a call sends their limits only: a server holds one script for each set of rules.
//
// A key of one rule is one string of 21 bytes, 6 for a block, and 6 for each older granule with units:
//
//   version 1 | shape 2 | birth 6 | mark 6 | a 3 | b 3 | blocked until 6 | (granule mod 2^24 3, units 3) ...
//
//   version  ValueVersion, which says whether there is a block. Another one is an error by name
//   shape    a checksum of algorithm, window and granules: another limiter's value is an error by name
//   birth    milliseconds in the low 43 bits; above them a count of refunds by key and of clearings, modulo 32
//   mark     sliding window: the newest granule; fixed window: its beginning, ms; bucket: its last charge, ms
//   a        sliding window: units of the newest granule; fixed window: units; bucket: how full it was, in time units
//   b        sliding window: all units, also of granules that have left since the last write
//   until    milliseconds; 2^48 - 1: for ever
//
// All numbers in the script stay below 2^53, so that a double holds them: `checkRemoteRule` bounds windows and granules.
import type { RemoteRule } from './remote-rule.js'
import {
  ALGORITHM_CODE,
  BIRTH_RANGE_MS,
  KEY_FAULT,
  RULE_FLAG,
  ValueVersion,
  Verdict,
} from './script-codes.js'
import { shortcutOf } from './strict-shortcut.js'

/**
 * The source of the script for these rules, and for the time of the server or a test.
 *
 * KEYS: for each key, one of each rule. ARGV: the operation, the limit of each rule, and in a test the time in
 * milliseconds; then the cost in each rule of each key, then the arguments of the operation.
 *
 * Operations, of one key except the first four: c check, t check without charging a refusal, p peek, a penalize for
 * what was used ms ago (for each key; one key may stand there several times), n penalize, r refund by key (of the cost),
 * g give back a decision (a mark and a birth for each rule, '' where it charged nothing), b block for ms
 * (-1: for ever), u unblock, x clear, w units used since ms ago (index of the rule).
 */
export function strictScript(rules: readonly RemoteRule[], isTest: boolean): string {
  const [first] = rules
  const isPlain = rules.length === 1 && first!.flags === ALGORITHM_CODE.SLIDING_WINDOW
  return [
    DECLARATIONS,
    isTest ? `local now = ARGV[${rules.length + 2}] + 0` : TIME,
    `local R, A, isTest = ${rules.length}, ${rules.length + (isTest ? 2 : 1)}, ${isTest}`,
    'local K = #KEYS / R',
    isPlain ? shortcutOf(first!, isTest) : '',
    rulesOf(rules),
    SCRIPT,
  ].join('\n')
}

const DECLARATIONS = `
local call, up, pack, floor, ceil, sub = redis.call, struct.unpack, struct.pack, math.floor, math.ceil, string.sub
local op = ARGV[1]
local j, reply, o = 0, nil, 0
local all, changed, read = false, {}, nil -- the values of all keys, those that are no more so, the last one that was read`

const TIME = `
local t = call('TIME')
local now = t[2] / 1000
now = t[1] * 1000 + now - now % 1`

/** `ruleAt(i)`: flags, shape, limit, n, window in milliseconds. */
const rulesOf = (rules: readonly RemoteRule[]): string => `
local function ruleAt(i)
${rules.map((rule, i) => `if i == ${i + 1} then return ${constantsOf(rule, i)} end`).join('\n')}
end`

const constantsOf = ({ flags, shape, parts, windowMs }: RemoteRule, index: number): string =>
  `${flags}, ${shape}, ARGV[${index + 2}] + 0, ${parts}, ${windowMs}`

const SCRIPT = `
reply = reply or {}
local max, min = math.max, math.min
local FOREVER, HEAD, BIRTH = 281474976710655, '>BI2I6I6I3I3', ${BIRTH_RANGE_MS}
local asks = op == 'c' or op == 't' or op == 'p'

-- time units of a bucket at ms, and the first ms at which that many have passed
local function unitsAt(ms, n, W) local w = floor(ms / W); return w * n + floor((ms - w * W) * n / W) end
local function msOf(units, n, W) local w = floor(units / n); return w * W + ceil((units - w * n) * W / n) end

-- when a sliding window's value ends that was charged in granule g: the same in an even granule and the next one, so
-- that only one of two needs to set it
local function endOf(g, n, W) return ceil((g + n + 2 - g % 2) * W / n) end

local function save(k, s, born, shape, mark, a, b, till, tail, emptyMs)
  local v
  if till > 0 then v = pack(HEAD, ${ValueVersion.BLOCKED}, shape, born, mark, a, b) .. pack('>I6', till) .. tail
  else v = pack(HEAD, ${ValueVersion.PLAIN}, shape, born, mark, a, b) .. tail end
  if isTest or till == FOREVER then call('SET', k, v)
  else
    -- after a refund by key or a clearing it stays as long as before: other processes must see its birth
    local stays = s and born >= BIRTH and call('PTTL', k) or 0
    call('SET', k, v, 'PX', max(max(emptyMs, till, now) - now + 1, stays))
  end
end

-- when so many units have left: a sliding window's older granules from byte p, then the newest ones
local function leaves(s, p, g, mark, a, left, n, W)
  local at, len = g, s and #s or 0
  while p < len do
    local e, c = up('>I3I3', s, p)
    left = left - c
    if left <= 0 then at = g - (g - e) % 16777216; break end
    p = p + 6
  end
  if left > 0 and left <= a then at = mark end
  return ceil((at + n + 1) * W / n) - now
end

local costs = A
for j = j, K - 1 do
  local st, refused, fault = {}, false, nil
  for i = 1, R do
    local flags, shape, limit, n, W = ruleAt(i)
    local alg = flags % 16
    local k, cost = KEYS[j * R + i], ARGV[costs + j * R + i] + 0
    local s = read or all and not changed[k] and all[j + 1] or redis.pcall('GET', k)
    read = nil
    if all then changed[k] = true end
    if type(s) == 'table' then fault = ${KEY_FAULT.TYPE}; break end
    local born, mark, a, b, till, first, sum = now, 0, 0, 0, 0, 22, 0
    local g, need, free = 0, 0, 0
    if s then
      if #s < 21 or #s % 6 ~= 3 then fault = ${KEY_FAULT.CUT}; break end
      local version, own
      version, own, born, mark, a, b = up(HEAD, s)
      if version == ${ValueVersion.BLOCKED} and #s > 26 then till, first = up('>I6', s, 22), 28
      elseif version ~= ${ValueVersion.PLAIN} then fault = version == ${ValueVersion.BLOCKED} and ${KEY_FAULT.CUT} or ${KEY_FAULT.VERSION}; break end
      if own ~= shape then fault = ${KEY_FAULT.SHAPE}; break end
    else s = false end
    local p = first
    -- g: the place of a charge now; sum: used, in units of the algorithm; need: of the cost; free: left
    if alg == 0 then
      g = floor(now * n / W)
      if s then
        if g < mark then g = mark end
        if g - mark > n then a, p = 0, #s + 1
        else
          sum = b
          local len = #s
          while p < len do
            local e, c = up('>I3I3', s, p)
            if (g - e) % 16777216 <= n then break end
            sum = sum - c
            p = p + 6
          end
        end
      end
      need, free = cost, limit - sum
    elseif alg == 1 then
      g = mark
      if s and a > 0 and now < mark + W then sum = a else g = floor(now / n) * n end
      need, free = cost, limit - sum
    else
      g = max(now, mark)
      if s then sum = max(0, unitsAt(mark, n, W) + a - unitsAt(g, n, W)) end
      need, free = ceil(cost * n / limit), n - sum
    end
    local verdict, wait = ${Verdict.ADMITTED}, 0
    if asks and ((cost > 0 and need > free) or till > now) then
      verdict = ${Verdict.REFUSED}
      if cost > limit or till == FOREVER then wait = -1
      else
        if cost > 0 and need > free then
          if alg == 0 then wait = leaves(s, p, g, mark, a, need - free, n, W)
          elseif alg == 1 then wait = g + W - now
          else wait = msOf(unitsAt(g, n, W) + need - free, n, W) - now end
        end
        if till - now > wait then wait = till - now end
      end
      if flags % ${RULE_FLAG.COUNT_REFUSED} >= ${RULE_FLAG.SHADOW} then verdict = ${Verdict.SHADOWED} else refused = true end
    end
    st[i] = {s, born, mark, a, b, till, p, sum, g, need, verdict, wait, k, shape, limit, n, W, alg, flags, cost, first}
  end

  if fault then
    o = o + 1
    reply[o] = fault
  elseif op == 'w' then
    local x, c = st[ARGV[costs + #KEYS + 1] + 0], 0
    local s, n, W, alg, from = x[1], x[16], x[17], x[18], nil
    if alg == 0 then
      if s and x[9] - x[3] <= x[16] then
        from = floor((now - x[20]) * n / W)
        local q, len = x[7], #s
        while q < len do
          local e, u = up('>I3I3', s, q)
          if x[9] - (x[9] - e) % 16777216 >= from then c = c + u end
          q = q + 6
        end
        if x[3] >= from then c = c + x[4] end
      end
    elseif alg == 1 then c = x[8]
    else c = ceil(x[8] * x[15] / n) end
    o = o + 1
    reply[o] = c
  else
    local agedMs = op == 'a' and ARGV[costs + #KEYS + 1 + j] + 0 or 0
    local charges = op == 'n' or op == 'a' or (op == 'c' or op == 't') and not refused
    for i = 1, R do
      local s, born, mark, a, b, till, p, sum, g, need, verdict, wait, k, shape, limit, n, W, alg, flags, cost, first = unpack(st[i])
      local receipt, result = -1, 0
      local isOver = verdict ~= ${Verdict.ADMITTED}
      local counts = charges and verdict ~= ${Verdict.SHADOWED}
        or op == 'c' and isOver and flags >= ${RULE_FLAG.COUNT_REFUSED} and cost <= limit
      if op == 'a' and alg == 1 and now - agedMs < g then
        -- in the window before; if there is no window now, that one may last still
        if sum == 0 then g = floor((now - agedMs) / n) * n end
        counts = (now - agedMs >= g or n < W and agedMs < W) and now < g + W
      end
      if counts and cost > 0 then
        receipt = g
        if isOver then -- it must wait for its own charge, too
          receipt = -1
          local later
          if alg == 0 then later = leaves(s, p, g, mark, a, min(sum + need, 16777215) + need - limit, n, W)
          elseif alg == 1 then later = g + W - now
          else later = msOf(unitsAt(g, n, W) + min(sum + need, 3 * n) + need - n, n, W) - now end
          if wait >= 0 then wait = max(wait, later) end
        end
        if op == 'a' and alg == 0 and floor((now - agedMs) * n / W) < g then
          -- into its own granule: the older granules are in order
          local old, tail, done = floor((now - agedMs) * n / W), {}, false
          if sum + need > 16777215 then need = 16777215 - sum end
          if g - mark > n or not s then a = 0 end
          if mark < g and a > 0 then s = s .. pack('>I3I3', mark % 16777216, a) end
          if mark < g then a = 0 end
          local q, len = p, s and #s or 0
          while q < len do
            local e, c = up('>I3I3', s, q)
            local at = g - (g - e) % 16777216
            if at == old then c = min(c + need, 16777215); done = true
            elseif at > old and not done then tail[#tail + 1] = pack('>I3I3', old % 16777216, need); done = true end
            tail[#tail + 1] = pack('>I3I3', e, c)
            q = q + 6
          end
          if not done then tail[#tail + 1] = pack('>I3I3', old % 16777216, need) end
          if g - old <= n then save(k, s, born, shape, g, a, sum + need, till, table.concat(tail), endOf(g, n, W)) end
        elseif alg == 0 then
          if sum + need > 16777215 then need = 16777215 - sum end
          if g - mark > n or not s then a = 0 end
          sum = sum + need
          if s and mark == g and p == first then
            a = a + need
            call('SETRANGE', k, 15, pack('>I3I3', a, sum))
          else
            local tail = s and sub(s, p) or ''
            if mark < g then
              if a > 0 then tail = tail .. pack('>I3I3', mark % 16777216, a) end
              a = 0
            end
            a = a + need
            save(k, s, born, shape, g, a, sum, till, tail, endOf(g, n, W))
          end
          mark = g
        elseif alg == 1 then
          sum = min(sum + need, 2097151)
          if s and mark == g then call('SETRANGE', k, 15, pack('>I3', sum))
          else save(k, s, born, shape, g, sum, 0, till, '', g + W) end
        else
          if sum == 0 then born = floor(born / BIRTH) * BIRTH + now end -- what was charged before is gone
          sum = min(sum + need, 3 * n)
          save(k, s, born, shape, g, sum, 0, till, '', msOf(unitsAt(g, n, W) + sum, n, W))
        end
      elseif (op == 'r' or op == 'g') and s and sum > 0 then
        local whole, mine = min(cost, sum), nil
        local left = whole
        if op == 'g' then
          local at = costs + #KEYS + 2 * i - 1
          mine = ARGV[at]
          if mine == '' or ARGV[at + 1] + 0 ~= born then left = 0 else mine = mine + 0 end
        else born = (floor(born / BIRTH) + 1) % 32 * BIRTH + born % BIRTH end
        local given = 0
        if left == 0 then given = 0
        elseif alg == 0 then
          local q, len, out = p, #s, {}
          while q < len do
            local e, c = up('>I3I3', s, q)
            if left > 0 and (not mine or mine == g - (g - e) % 16777216) then
              local m = min(c, left); c = c - m; left = left - m
            end
            if c > 0 then out[#out + 1] = pack('>I3I3', e, c) end
            q = q + 6
          end
          if left > 0 and (not mine or mine == mark) then local m = min(a, left); a = a - m; left = left - m end
          given = whole - left
          sum = sum - given
          if given > 0 then save(k, s, born, shape, mark, a, sum, till, table.concat(out), endOf(mark, n, W)) end
        elseif alg == 1 then
          if not mine or mine == g then given = min(sum, cost) end
          sum = sum - given
          if given > 0 then save(k, s, born, shape, g, sum, 0, till, '', g + W) end
        else
          local full = min(sum, ceil(cost * n / limit))
          sum = sum - full
          given = mine and cost or floor(full * limit / n)
          if full > 0 then save(k, s, born, shape, g, sum, 0, till, '', msOf(unitsAt(g, n, W) + sum, n, W)) end
        end
        result = given
      elseif op == 'b' or op == 'u' then
        if op == 'u' then
          if till > now then result = 1 end
          till = 0
        else till = cost < 0 and FOREVER or min(now + cost, FOREVER - 1) end
        if op == 'b' or s then
          if alg == 0 then
            local old = not s or g - mark > n
            save(k, s, born, shape, old and g or mark, old and 0 or a, sum, till, s and sub(s, p) or '', endOf(g, n, W))
          elseif alg == 1 then save(k, s, born, shape, g, sum, 0, till, '', g + W)
          else save(k, s, born, shape, g, sum, 0, till, '', msOf(unitsAt(g, n, W) + sum, n, W)) end
        end
      elseif op == 'x' and s then
        -- It stays until its charges would have left: so other processes see the birth that they know.
        born = (floor(born / BIRTH) + 1) % 32 * BIRTH + born % BIRTH
        call('SET', k, pack(HEAD, ${ValueVersion.PLAIN}, shape, born, mark, 0, 0), 'KEEPTTL')
        if till == FOREVER and not isTest then call('PEXPIRE', k, 3 * W) end
      end
      if asks then
        local left, reset = limit - sum, 0
        if alg == 0 then
          if sum > 0 then
            local newest = mark
            if a == 0 then newest = g - (g - up('>I3', s, #s - 5)) % 16777216 end -- the rest was refunded
            reset = ceil((newest + n + 1) * W / n) - now
          end
        elseif alg == 1 then if sum > 0 then reset = g + W - now end
        else
          left = floor((n - sum) * limit / n)
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
        o = o + 1
        reply[o] = result
      end
    end
  end
end
return reply
`
