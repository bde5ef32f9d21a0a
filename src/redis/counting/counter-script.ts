// The script of the sliding counter: two fixed windows, the present one and the one before.
//
// What was used in the window before counts by the part of it that the last window still covers, as if it had been
// used evenly: estimate = before * (W - elapsed) / W + now. A request is admitted if the estimate and its cost are
// at most the limit. The method is known from https://blog.cloudflare.com/counting-things-a-lot-of-different-things/.
// It is approximate: a burst at the end of a window and another one a window later may be nearly twice the limit.
//
// A key of one rule is one string of 27 bytes, which has both counters and expires when neither counts:
//
//   version 1 | shape 2 | birth 6 | last charge, ms 6 | units now 3 | units before 3 | blocked until, ms 6
//
// Birth and the end of a block are those of `strict-value.ts`, and shapes differ between algorithms. The
// estimate is exact: before * (W - elapsed) has up to 59 bits, so `ratio` divides it in two halves.

import { COUNT_REFUSED, SHADOW } from '../../core/verdict.js'
import { CHANGED_FIELDS, KEY_FAULT, NO_MARK, Verdict } from '../../remote/reply-codes.js'
import { flagIn, IS_OTHER_TYPE, REFUNDED, ValueVersion } from '../script-codes.js'
import { FIRST_ARGUMENTS, RULE_ARGUMENTS } from './script-arguments.js'

/**
 * KEYS: for each key, one of each rule. ARGV: see `argumentsOf`. The operations and the reply are those of the
 * script of the packed strings. A receipt's mark is the number of its window.
 */
export const COUNTER_SCRIPT = `
local call, up, pack, floor, ceil = redis.call, struct.unpack, struct.pack, math.floor, math.ceil
local fmod, max, min = math.fmod, math.max, math.min
local FOREVER, HEAD, MOST = 281474976710655, '>BI2I6I6I3I3I6', 16777215
local op, now, R = ARGV[1], ARGV[2] + 0, ARGV[3] + 0
local isTest = now > 0
if not isTest then
  local t = call('TIME')
  now = t[1] * 1000 + floor(t[2] / 1000)
end
local costs = ${FIRST_ARGUMENTS} + ${RULE_ARGUMENTS} * R
local more = costs + #KEYS
local K = #KEYS / R
local j, reply, o = 0, {}, 0

-- The shortcut: a check by one rule without flags. It ends before a key that is out of the ordinary.
if op == 'c' and R == 1 and ARGV[4] == '0' then
  local shape, limit, W = ARGV[5] + 0, ARGV[6] + 0, ARGV[7] + 0
  local i = floor(now / W)
  local left = (i + 1) * W - now
  while j < K do
    local k, cost = KEYS[j + 1], ARGV[costs + j + 1] + 0
    local s = redis.pcall('GET', k)
    local born, units, before, till = now, 0, 0, 0
    if s then
      if #s ~= 27 then break end -- an error has no length
      local version, own, mark
      version, own, born, mark, units, before, till = up(HEAD, s)
      if version ~= ${ValueVersion.COUNTER} or own ~= shape or mark > now or till > now then break end
      local age = i - floor(mark / W)
      if age == 1 then units, before = 0, units
      elseif age > 1 then units, before = 0, 0 end
    end
    local product = before * left
    if product > 9007199254740991 then break end
    local rest = fmod(product, W)
    local used = units + (product - rest) / W
    if rest > 0 then used = used + 1 end
    if cost == 0 or used + cost > limit then break end
    local v = pack(HEAD, ${ValueVersion.COUNTER}, shape, born, now, units + cost, before, till)
    if isTest then call('SET', k, v) else call('SET', k, v, 'PX', left + W + 1) end
    reply[o + 1], reply[o + 2], reply[o + 3], reply[o + 4], reply[o + 5], reply[o + 6] =
      ${Verdict.ADMITTED}, limit - used - cost, 0, left + W, i, born
    o, j = o + 6, j + 1
  end
  if j == K then return reply end
end

local asks = op == 'c' or op == 't' or op == 'p'

-- floor(a * x / d) and the rest, for a and a/d*x below 2^24 and 2^36: each product stays below 2^53
local function ratio(a, x, d)
  local high = floor(a / 4096) * x
  local rest = fmod(high, d)
  local low = rest * 4096 + fmod(a, 4096) * x
  local last = fmod(low, d)
  return (high - rest) / d * 4096 + (low - last) / d, last
end

-- the units of the window before that count at g, rounded up
local function weighted(before, g, W)
  local units, rest = ratio(before, W - fmod(g, W), W)
  return rest > 0 and units + 1 or units
end

-- the first ms of window i or the next ones at which most units are used
local function fitsAt(most, units, before, i, W)
  if units <= most then
    if before == 0 then return 0 end
    return (i + 1) * W - ratio(most - units, W, before)
  end
  return (i + 2) * W - ratio(most, W, units)
end

local function save(k, x, mark)
  local v = pack(HEAD, ${ValueVersion.COUNTER}, x.shape, x.born, mark, x.units, x.before, x.till)
  if isTest or x.till == FOREVER then call('SET', k, v)
  else call('SET', k, v, 'PX', max((floor(mark / x.W) + 2) * x.W, x.till, now) - now + 1) end
end

${IS_OTHER_TYPE}
${REFUNDED}

-- the value of a key, as of now; or why there is none
local function load(k, at)
  local x = {
    flags = ARGV[at] + 0, shape = ARGV[at + 1] + 0, limit = ARGV[at + 2] + 0, W = ARGV[at + 3] + 0,
    born = now, mark = now, units = 0, before = 0, till = 0,
  }
  local W = x.W
  local s = redis.pcall('GET', k)
  if type(s) == 'table' then
    if not isOtherType(s) then call('GET', k) end -- raises it
    return ${KEY_FAULT.TYPE}
  end
  if s then
    if #s < 27 then return ${KEY_FAULT.CUT} end
    local version, own, born, mark, a, b, till = up(HEAD, s)
    if version ~= ${ValueVersion.COUNTER} then return ${KEY_FAULT.VERSION} end
    if own ~= x.shape then return ${KEY_FAULT.SHAPE} end
    if #s > 27 then return ${KEY_FAULT.CUT} end
    x.exists, x.born, x.mark, x.till = true, born, mark, till
    x.g = max(now, mark) -- a clock that steps back stands still
    x.i = floor(x.g / W)
    local age = x.i - floor(mark / W)
    if age == 0 then x.units, x.before = a, b
    elseif age == 1 then x.before = a end
    if age > 0 then x.mark = x.g end
  else x.g, x.i = now, floor(now / W) end
  x.used = x.units + weighted(x.before, x.g, W)
  return x
end

local function charge(k, x, cost)
  x.units = min(x.units + cost, MOST)
  x.mark = x.g
  save(k, x, x.g)
end

for j = j, K - 1 do
  local st, refused, fault = {}, false, nil
  for i = 1, R do
    local x = load(KEYS[j * R + i], ${FIRST_ARGUMENTS + 1} + (i - 1) * ${RULE_ARGUMENTS})
    if type(x) == 'number' then fault = x; break end
    local cost = ARGV[costs + j * R + i] + 0
    x.cost, x.verdict, x.wait = cost, ${Verdict.ADMITTED}, 0
    local isOver = cost > 0 and x.used + cost > x.limit
    if asks and (isOver or x.till > now) then
      x.verdict = ${Verdict.REFUSED}
      if cost > x.limit or x.till == FOREVER then x.wait = -1
      else
        if isOver then x.wait = fitsAt(x.limit - cost, x.units, x.before, x.i, x.W) - now end
        x.wait = max(x.wait, x.till - now)
      end
      if ${flagIn('x.flags', SHADOW)} then x.verdict = ${Verdict.SHADOWED} else refused = true end
    end
    st[i] = x
  end
  if fault then
    o = o + 1
    reply[o] = fault
  elseif op == 'w' then
    local x = st[ARGV[more + 1] + 0]
    local from = floor((x.g - x.cost) / x.W)
    o = o + 1
    reply[o] = (x.i >= from and x.units or 0) + (x.i - 1 >= from and x.before or 0)
  else
    local charges = op == 'n' or op == 'a' or (op == 'c' or op == 't') and not refused
    for i = 1, R do
      local x, k, result = st[i], KEYS[j * R + i], 0
      local unmarked = asks and x.till > now and ${NO_MARK.BLOCKED} or ${NO_MARK.NOTHING}
      local receipt = unmarked
      local cost, W = x.cost, x.W
      local ms = (x.i + 2) * W - now
      local isOver = x.verdict ~= ${Verdict.ADMITTED}
      local counts = charges and x.verdict ~= ${Verdict.SHADOWED}
        or op == 'c' and isOver and ${flagIn('x.flags', COUNT_REFUSED)} and cost <= x.limit
      if op == 'a' and cost > 0 then
        local age = x.i - floor((x.g - ARGV[more + 1 + j]) / W)
        if age == 0 or age == 1 then receipt = x.i end
        if age == 0 then charge(k, x, cost)
        elseif age == 1 then
          x.before = min(x.before + cost, MOST)
          charge(k, x, 0)
        end
      elseif counts and cost > 0 then
        receipt = x.i
        charge(k, x, cost)
        if isOver then -- it must wait for its own charge, too
          receipt = unmarked
          if x.wait >= 0 then x.wait = max(x.wait, fitsAt(x.limit - cost, x.units, x.before, x.i, W) - now) end
        end
      elseif (op == 'r' or op == 'g') and x.exists then
        local mine, fromBefore, fromNow = nil, 0, 0
        if op == 'r' then fromBefore = min(x.before, cost)
        else
          mine = ARGV[more + 2 * i - 1]
          if mine ~= '' and ARGV[more + 2 * i] + 0 == x.born and mine + 0 == x.i - 1 then fromBefore = min(x.before, cost) end
        end
        if op == 'r' or mine ~= '' and ARGV[more + 2 * i] + 0 == x.born and mine + 0 == x.i then
          fromNow = min(x.units, cost - fromBefore)
        end
        result = fromBefore + fromNow
        if op == 'r' then
          if fromNow == 0 then receipt, ms = fromBefore, x.g - x.i * W else receipt, ms = fromNow, 0 end
        end
        if result > 0 then
          x.before, x.units = x.before - fromBefore, x.units - fromNow
          if op == 'r' then x.born = refunded(x.born) end
          save(k, x, x.mark)
        end
      elseif op == 'b' or op == 'u' then
        if op == 'u' then
          if x.till > now then result = 1 end
          x.till = 0
        else x.till = cost < 0 and FOREVER or min(now + cost, FOREVER - 1) end
        if op == 'b' or x.exists then save(k, x, x.mark) end
      elseif op == 'x' and x.exists then
        -- It stays until its charges would have left: so other processes see the birth that they know.
        x.born = refunded(x.born)
        call('SET', k, pack(HEAD, ${ValueVersion.COUNTER}, x.shape, x.born, x.mark, 0, 0, 0), 'KEEPTTL')
        if x.till == FOREVER and not isTest then call('PEXPIRE', k, 2 * W) end
      end
      if asks then
        local left, reset = x.limit - x.units - weighted(x.before, x.g, W), 0
        if x.units > 0 then reset = (x.i + 2) * W - now
        elseif x.before > 0 then reset = (x.i + 1) * W - now end
        if x.till > now then left, reset = 0, x.till == FOREVER and -1 or max(reset, x.till - now) end
        reply[o + 1], reply[o + 2], reply[o + 3], reply[o + 4], reply[o + 5], reply[o + 6] =
          x.verdict, max(left, 0), x.wait, reset, receipt, x.born
        o = o + 6
      else
        reply[o + 1], reply[o + 2], reply[o + 3], reply[o + 4], reply[o + 5] =
          result, receipt, x.born, ms, x.units + x.before
        o = o + ${CHANGED_FIELDS}
      end
    end
  end
end
return reply
`
