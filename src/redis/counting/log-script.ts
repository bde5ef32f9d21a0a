// The script of the sliding log: the time of each charge, in a sorted set.
//
// A charge counts for a window, to the microsecond: it is used until the server's clock has gone on by a window. The
// method is known from https://engineering.classdojo.com/blog/2015/02/06/rolling-rate-limiter/, which has an entry for
// each request, also for a refused one. Here a refusal writes nothing, and an entry has the units of its charge.
//
// The members of a key of one rule. The scores of the first five are below 0, those of the charges above:
//
//   v   -(LOG_VERSION * 2^16 + shape)   another version, window or algorithm is an error by name
//   b   -birth                          as in `strict-script.ts`
//   s   -(serial * 2^24 + units)        of the newest charge; of all charges in the set
//   t   -time, µs                       of the newest charge: a clock that steps back stands still there
//   u   -until, ms                      of a block; 0: none; 2^48 - 1: for ever
//   units:serial   time, µs             a charge
//
// The set has at most as many charges as the largest limit of the rule (`maxLimit`). Of more, which only penalties and
// refusals that count can add, the oldest go: they decide nothing, because the others fill the limit.

import { COUNT_REFUSED, SHADOW } from '../../core/verdict.js'
import { CHANGED_FIELDS, KEY_FAULT, NO_MARK, Verdict } from '../../remote/reply-codes.js'
import { flagIn, IS_OTHER_TYPE, REFUNDED } from '../script-codes.js'
import { FIRST_ARGUMENTS, RULE_ARGUMENTS } from './script-arguments.js'

export const LOG_VERSION = 1
/** Members beside the charges. */
const LOG_HEADERS = 5
/** The range of units in the score of `s`. */
export const UNITS_RANGE = 2 ** 24
/** Serials of charges. Two that count at the same time differ. */
export const SERIALS = 2 ** 29
/** A charge has fewer units. A receipt's mark is `serial * MARK_RANGE + units`. */
export const MARK_RANGE = 2 ** 23

/** Members are charges above this score. */
const CHARGES = '(0'

/**
 * KEYS: for each key, one of each rule. ARGV: see `argumentsOf`. The operations and the reply are those of the
 * script of the packed strings.
 */
export const LOG_SCRIPT = `
local call, floor, ceil, max, min, match = redis.call, math.floor, math.ceil, math.max, math.min, string.match
local FOREVER, UNITS, SERIALS, MARK = 281474976710655, ${UNITS_RANGE}, ${SERIALS}, ${MARK_RANGE}
local op, now, R = ARGV[1], ARGV[2] * 1000, ARGV[3] + 0
local isTest = now > 0
if not isTest then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
local nowMs = floor(now / 1000)
local costs = ${FIRST_ARGUMENTS} + ${RULE_ARGUMENTS} * R
local more = costs + #KEYS
local K = #KEYS / R
local j, reply, o = 0, {}, 0

-- The shortcut: a check by one rule without flags. It ends before a key that is out of the ordinary.
if op == 'c' and R == 1 and ARGV[4] == '0' then
  local version, limit, W = ${LOG_VERSION} * 65536 + ARGV[5], ARGV[6] + 0, ARGV[7] * 1000
  while j < K do
    local k, cost = KEYS[j + 1], ARGV[costs + j + 1] + 0
    local h = redis.pcall('ZMSCORE', k, 'v', 'b', 's', 't', 'u')
    if h.err or not (h[1] and h[2] and h[3] and h[4] and h[5]) then break end
    if -h[1] ~= version or -h[4] > now or h[5] + 0 ~= 0 then break end
    local serial = floor(-h[3] / UNITS)
    local sum = -h[3] - serial * UNITS
    local old = call('ZRANGEBYSCORE', k, '${CHARGES}', now - W)
    for q = 1, #old do sum = sum - (match(old[q], '^(%d+):%d+$') or UNITS) end
    if cost == 0 or sum < 0 or sum + cost > limit then break end
    if #old > 0 then call('ZREMRANGEBYSCORE', k, '${CHARGES}', now - W) end
    serial, sum = (serial + 1) % SERIALS, sum + cost
    call('ZADD', k, -serial * UNITS - sum, 's', -now, 't', now, cost .. ':' .. serial)
    if not isTest then call('PEXPIRE', k, W / 1000 + 1) end
    reply[o + 1], reply[o + 2], reply[o + 3], reply[o + 4], reply[o + 5], reply[o + 6] =
      ${Verdict.ADMITTED}, limit - sum, 0, W / 1000, serial * MARK + cost, -h[2]
    o, j = o + 6, j + 1
  end
  if j == K then return reply end
end

local asks = op == 'c' or op == 't' or op == 'p'

local isDamaged = false -- a member that is no charge
local function unitsOf(member)
  local units = tonumber(match(member, '^(%d+):%d+$'))
  if not units then isDamaged = true end
  return units or 0
end

-- the charges that count from a time on, oldest first: member, time, ...; a score in Lua's text of a number
local function charges(k, after, most)
  return call('ZRANGEBYSCORE', k, '(' .. string.format('%.0f', max(0, after)), '+inf', 'WITHSCORES', 'LIMIT', 0, most)
end

${IS_OTHER_TYPE}
${REFUNDED}

-- the value of a key, as of now; or why there is none
local function load(k, at)
  local x = {
    k = k, flags = ARGV[at] + 0, shape = ARGV[at + 1] + 0, limit = ARGV[at + 2] + 0, W = ARGV[at + 3] * 1000,
    most = ARGV[at + 4] + 0, born = nowMs, serial = 0, sum = 0, mark = 0, till = 0, g = now,
  }
  local h = redis.pcall('ZMSCORE', k, 'v', 'b', 's', 't', 'u')
  if h.err then
    if not isOtherType(h) then call('ZMSCORE', k, 'v') end -- raises it
    return ${KEY_FAULT.TYPE}
  end
  if not (h[1] and h[2] and h[3] and h[4] and h[5]) then
    if call('EXISTS', k) == 1 then return ${KEY_FAULT.CUT} end
    return x
  end
  local v, s = -h[1], -h[3]
  if floor(v / 65536) ~= ${LOG_VERSION} then return ${KEY_FAULT.VERSION} end
  if v % 65536 ~= x.shape then return ${KEY_FAULT.SHAPE} end
  x.exists, x.born, x.serial, x.sum, x.mark, x.till = true, -h[2], floor(s / UNITS), s % UNITS, -h[4], -h[5]
  x.g = max(now, x.mark)
  if x.sum > 0 then
    local old = call('ZRANGEBYSCORE', k, '${CHARGES}', x.g - x.W)
    for q = 1, #old do x.sum = x.sum - unitsOf(old[q]) end
    x.hasExpired = #old > 0
    if x.sum < 0 then return ${KEY_FAULT.CUT} end
  end
  if op == 'r' or op == 'w' then
    local list = charges(k, 0, -1)
    for q = 1, #list, 2 do unitsOf(list[q]) end
  end
  return x
end

-- when so many of the units that count have left
local function leaves(x, left)
  local list, at = charges(x.k, x.g - x.W, left), x.g
  for q = 1, #list, 2 do
    at = list[q + 1] + 0
    left = left - unitsOf(list[q])
    if left <= 0 then break end
  end
  return ceil((at + x.W - now) / 1000)
end

-- writes the members that are no charges, and how long the key stays
local function save(x, ...)
  local s = x.serial * UNITS + x.sum
  call('ZADD', x.k, -(${LOG_VERSION} * 65536 + x.shape), 'v', -x.born, 'b', -s, 's', -x.mark, 't', -x.till, 'u', ...)
  if isTest then return end
  if x.till == FOREVER then call('PERSIST', x.k)
  else call('PEXPIRE', x.k, ceil(max(x.mark + x.W - now, x.till * 1000 - now, 0) / 1000) + 1) end
end

-- removes what has left; its units are in no sum any more
local function drop(x)
  if x.hasExpired then call('ZREMRANGEBYSCORE', x.k, '${CHARGES}', x.g - x.W) end
  x.hasExpired = false
end

-- charges as of a time; returns the receipt
local function charge(x, cost, at)
  local units = min(cost, MARK - 1, UNITS - 1 - x.sum)
  if units <= 0 then return -1 end
  drop(x)
  x.serial = (x.serial + 1) % SERIALS
  x.sum = x.sum + units
  x.mark = x.g
  save(x, max(1, at), units .. ':' .. x.serial)
  if x.sum > x.most then
    local beyond = call('ZCARD', x.k) - ${LOG_HEADERS} - x.most
    if beyond > 0 then
      local oldest = charges(x.k, 0, beyond)
      for q = 1, #oldest, 2 do
        x.sum = x.sum - unitsOf(oldest[q])
        call('ZREM', x.k, oldest[q])
      end
      save(x)
    end
  end
  return x.serial * MARK + units
end

-- takes up to some units out of a charge
local function take(x, member, at, units, most)
  local less = min(units, most)
  call('ZREM', x.k, member)
  if less < units then call('ZADD', x.k, at, (units - less) .. match(member, ':%d+$')) end
  x.sum = x.sum - less
  return less
end

for j = j, K - 1 do
  local st, refused, fault = {}, false, nil
  for i = 1, R do
    local x = load(KEYS[j * R + i], ${FIRST_ARGUMENTS + 1} + (i - 1) * ${RULE_ARGUMENTS})
    if type(x) == 'number' then fault = x; break end
    local cost = ARGV[costs + j * R + i] + 0
    x.cost, x.verdict, x.wait = cost, ${Verdict.ADMITTED}, 0
    local isOver = cost > 0 and x.sum + cost > x.limit
    if asks and (isOver or x.till > nowMs) then
      x.verdict = ${Verdict.REFUSED}
      if cost > x.limit or x.till == FOREVER then x.wait = -1
      else
        if isOver then x.wait = leaves(x, x.sum + cost - x.limit) end
        x.wait = max(x.wait, x.till - nowMs)
      end
      if ${flagIn('x.flags', SHADOW)} then x.verdict = ${Verdict.SHADOWED} else refused = true end
    end
    if isDamaged then fault = ${KEY_FAULT.CUT}; break end
    st[i] = x
  end
  isDamaged = false
  if fault then
    o = o + 1
    reply[o] = fault
  elseif op == 'w' then
    local x, used = st[ARGV[more + 1] + 0], 0
    if x.exists then
      local list = charges(x.k, x.g - min(x.cost * 1000, x.W), -1)
      for q = 1, #list, 2 do used = used + unitsOf(list[q]) end
    end
    o = o + 1
    reply[o] = used
  else
    local isCharged = op == 'n' or op == 'a' or (op == 'c' or op == 't') and not refused
    for i = 1, R do
      local x = st[i]
      local unmarked = asks and x.till > nowMs and ${NO_MARK.BLOCKED} or ${NO_MARK.NOTHING}
      local cost, receipt, result, ms = x.cost, unmarked, 0, ceil((x.g + x.W - now) / 1000)
      local isOver = x.verdict ~= ${Verdict.ADMITTED}
      local counts = isCharged and x.verdict ~= ${Verdict.SHADOWED}
        or op == 'c' and isOver and ${flagIn('x.flags', COUNT_REFUSED)} and cost <= x.limit
      if op == 'a' and cost > 0 then
        local age = ARGV[more + 1 + j] * 1000
        if age < x.W then receipt = charge(x, cost, x.g - age) end
      elseif counts and cost > 0 then
        receipt = charge(x, cost, x.g)
        if isOver then -- it must wait for its own charge, too
          receipt = unmarked
          if x.wait >= 0 then x.wait = max(x.wait, leaves(x, x.sum + cost - x.limit)) end
        end
      elseif op == 'r' and x.sum > 0 then
        local list = charges(x.k, x.g - x.W, cost)
        for q = 1, #list, 2 do
          if result == cost then break end
          receipt = take(x, list[q], list[q + 1], unitsOf(list[q]), cost - result)
          result = result + receipt
          ms = floor((x.g - list[q + 1]) / 1000)
        end
        if result > 0 then
          x.born = refunded(x.born)
          drop(x)
          save(x)
        end
      elseif op == 'g' and x.sum > 0 then
        local mark = ARGV[more + 2 * i - 1]
        if mark ~= '' and ARGV[more + 2 * i] + 0 == x.born and cost > 0 then
          local units = mark % MARK
          local member = units .. ':' .. floor(mark / MARK)
          local at = call('ZSCORE', x.k, member)
          if at and at + x.W > x.g then
            result = take(x, member, at, units, cost)
            drop(x)
            save(x)
          end
        end
      elseif op == 'b' or op == 'u' then
        if op == 'u' then
          if x.till > nowMs then result = 1 end
          x.till = 0
        else x.till = cost < 0 and FOREVER or min(nowMs + cost, FOREVER - 1) end
        if op == 'b' or x.exists then
          drop(x)
          save(x)
        end
      elseif op == 'x' and x.exists then
        -- It stays until its charges would have left: so other processes see the birth that they know.
        call('ZREMRANGEBYSCORE', x.k, '${CHARGES}', '+inf')
        local isForever = x.till == FOREVER
        x.born = refunded(x.born)
        call('ZADD', x.k, -x.born, 'b', -x.serial * UNITS, 's', 0, 'u')
        if isForever and not isTest then call('PEXPIRE', x.k, x.W / 500) end
      end
      if asks then
        local left, reset = x.limit - x.sum, 0
        if x.sum > 0 then
          local newest = call('ZREVRANGE', x.k, 0, 0, 'WITHSCORES')
          reset = max(0, ceil((newest[2] + x.W - now) / 1000))
        end
        if x.till > nowMs then left, reset = 0, x.till == FOREVER and -1 or max(reset, x.till - nowMs) end
        reply[o + 1], reply[o + 2], reply[o + 3], reply[o + 4], reply[o + 5], reply[o + 6] =
          x.verdict, max(left, 0), x.wait, reset, receipt, x.born
        o = o + 6
      else
        reply[o + 1], reply[o + 2], reply[o + 3], reply[o + 4], reply[o + 5] = result, receipt, x.born, ms, x.sum
        o = o + ${CHANGED_FIELDS}
      end
    end
  end
end
return reply
`

/**
 * Empties a log like the operation x, or deletes what is none. ARGV[1]: the milliseconds for which a value without an
 * end stays.
 */
export const CLEAR_LOG_SCRIPT = `
${IS_OTHER_TYPE}
${REFUNDED}
local k = KEYS[1]
local h = redis.pcall('ZMSCORE', k, 'b', 's')
if h.err and not isOtherType(h) then redis.call('ZMSCORE', k, 'b') end -- raises it
if h.err or not (h[1] and h[2]) then return redis.call('UNLINK', k) end
local born, serial = -h[1], math.floor(-h[2] / ${UNITS_RANGE})
born = refunded(born)
redis.call('ZREMRANGEBYSCORE', k, '${CHARGES}', '+inf')
redis.call('ZADD', k, -born, 'b', -serial * ${UNITS_RANGE}, 's', 0, 'u')
if redis.call('PTTL', k) < 0 then redis.call('PEXPIRE', k, ARGV[1]) end
return 1
`
