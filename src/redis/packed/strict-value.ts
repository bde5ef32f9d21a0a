// The value of a key of one rule, as `strict-script.ts` writes it: one string of entries and a tail.
//
//   entry, entry, ... the newest first | record, record, ... | records 2 | blocked until 6 | birth 6 | high 6 or 4
//     | shape 2 | version 2
//   entry: granule, its low 1 or 3 bytes | units 3
//   record: node 8 | seq 4 | spent 6 | held 4 | end 6
//
//   units    all that were charged to this value, up to this granule and with it, modulo 2^24
//   until    milliseconds; 2^48 - 1: for ever. The version says whether it is there
//   record   a node with leases: the number of its last message, the units that it has spent ever and those that it
//            holds, and when its lease ends, in milliseconds. The version says whether there are records
//   birth    milliseconds in the low 43 bits; above them a count of refunds by key and of clearings, modulo 32
//   high     the bytes of the newest granule above those in its entry
//   shape    a checksum of algorithm, window and granules: another limiter's value is an error by name
//   version  ValueVersion, which says whether there is a block, and whether there are records. Another one is an error by
//            name
//
// The units of a granule are the difference of its entry and the next one. The last entry is of a granule that has
// left, or of none: the units in the window are those of the first entry less those of the newest one that has left.
// So a charge in the newest granule changes three bytes. One in a new granule puts an entry before a part of the old
// value that begins with its first byte: `struct.pack` copies such a part from the value. Any other part would be a
// string of its own first, and Redis's Lua hashes every byte of every string that it makes.
//
// A window of up to 255 granules has entries of 4 bytes: one byte tells the age of a granule, because no entry but the
// last one is more than a window older than the newest one. Other windows have entries of 6 bytes. So have fixed
// windows and token buckets, whose one entry is: the beginning of the window in milliseconds, and its units; the last
// charge of the bucket in milliseconds, and how full it was, in time units.
//
// A bucket's mark has more above its 43 bits: whether something was given back or unblocked, one bit, and how often
// the bucket was charged after it was empty, modulo 512.
//
// The units that nodes hold count like those of the granule in which the lease ends, because a node may spend them at
// the last moment of it. Afterwards the record is gone, and the next writer leaves it out. A value without records is
// that of a strict limiter.
//
// The length of a value is even. That of sliding counters is odd, and so was that of versions 1 and 2.
import { ALGORITHM_ROWS } from '../../core/algorithms.js'
import type { RemoteRule } from '../../remote/remote-rule.js'
import { BIRTH_RANGE_MS, KEY_FAULT } from '../../remote/reply-codes.js'
import { LEASED, RECORD, ValueVersion } from '../script-codes.js'

export interface ValueLayout {
  /** Bytes of an entry. */
  readonly size: 4 | 6
  /** What an entry has of a granule is the granule modulo this. */
  readonly low: number
  /** The formats of `struct`, without the byte order. */
  readonly entry: string
  readonly high: string
  /** Bytes of a tail without a block. */
  readonly tail: number
  readonly version: number
}

const NARROW: ValueLayout = {
  ...{ size: 4, low: 2 ** 8, entry: 'BI3', high: 'I6', tail: 16 },
  version: ValueVersion.NARROW,
}
const WIDE: ValueLayout = {
  ...{ size: 6, low: 2 ** 24, entry: 'I3I3', high: 'I4', tail: 14 },
  version: ValueVersion.WIDE,
}
/** A granule's age is at most the granules of the window: so many can be told from a byte. */
const MOST_NARROW = 255

export function layoutOf({ rule, parts }: RemoteRule): ValueLayout {
  return ALGORITHM_ROWS[rule.algorithm].isDated && parts <= MOST_NARROW ? NARROW : WIDE
}

/** A function of scripts: why a value is not of this rule. */
export const FAULT_OF = `
local function faultOf(s, shape)
  local len = #s
  if len % 2 == 1 then
    if len < 21 or len % 6 ~= 3 then return ${KEY_FAULT.CUT} end
    local version, own = up('>BI2', s)
    if version ~= 1 and version ~= 2 then return ${KEY_FAULT.CUT} end
    return own == shape and ${KEY_FAULT.VERSION} or ${KEY_FAULT.SHAPE}
  end
  if len < 20 then return ${KEY_FAULT.CUT} end
  local own, version = up('>I2I2', s, len - 3)
  local isKnown = version >= ${ValueVersion.NARROW} and version <= ${ValueVersion.WIDE_LEASED_BLOCKED}
  if isKnown == (own == shape) then return ${KEY_FAULT.CUT} end
  return isKnown and ${KEY_FAULT.SHAPE} or ${KEY_FAULT.VERSION}
end`

/**
 * Functions of the scripts, which have the time in `now`. `z`: bytes of an entry. `kept`: bytes of the entries of `s` that
 * count, and of the newest one that has left; 0 if there is no value. `base`: the units of that one. `mark`: the newest
 * granule. `records`: those that count, as text; nil: none. `last`: the newest granule in which one of them ends, or 0.
 */
export const VALUE_FUNCTIONS = `
local max, min = math.max, math.min
local FOREVER, BIRTH, UNITS = 281474976710655, ${BIRTH_RANGE_MS}, 16777216
-- of a bucket: above its mark, and to count one more time that it was charged when it was empty
local MADE_LESS, FILLED, MOST_FILLED = ${BIRTH_RANGE_MS}, ${2 * BIRTH_RANGE_MS}, ${1024 * BIRTH_RANGE_MS}
local function lessened(flags) return flags - flags % FILLED + MADE_LESS end
local ENTRY = {[4] = '>${NARROW.entry}', [6] = '>${WIDE.entry}'}
local LOW = {[4] = ${NARROW.low}, [6] = ${WIDE.low}}
local TAIL = {[4] = '>I6${NARROW.high}I2I2', [6] = '>I6${WIDE.high}I2I2'}
local TAIL_BYTES = {[4] = ${NARROW.tail}, [6] = ${WIDE.tail}}
local VERSION = {[4] = ${NARROW.version}, [6] = ${WIDE.version}}

${FAULT_OF}

-- bytes of the entries, birth, mark, units of the newest entry, end of a block, number of records; or nil and a fault
local function parse(s, z, shape, isSliding)
  local rest = #s - TAIL_BYTES[z]
  if rest < z then return nil, faultOf(s, shape) end
  local born, high, own, version = up(TAIL[z], s, rest + 1)
  local kind, till, records = version - VERSION[z], 0, 0
  if own == shape and (kind == 1 or kind == ${LEASED + 1}) and rest >= 6 then
    rest, kind = rest - 6, kind - 1
    till = up('>I6', s, rest + 1)
  end
  if own == shape and kind == ${LEASED} and rest >= 2 then
    records = up('>I2', s, rest - 1)
    kind = records == 0 and 1 or 0
    rest = rest - 2 - ${RECORD.size} * records
  end
  if own ~= shape or kind ~= 0 or rest % z ~= 0 or rest < z
    or isSliding ~= (rest > z) then return nil, faultOf(s, shape) end
  local low, units = up(ENTRY[z], s)
  return rest, born, high * LOW[z] + low, units, till, records
end

-- of the records after so many bytes those that count in granule g: held units, \`last\`, \`records\`, and the granule in
-- which the last held units end
local function leasesOf(s, bytes, count, g, n, W)
  local held, last, lastHeld, from, parts = 0, 0, 0, bytes + 1, ''
  local to = bytes + ${RECORD.size} * count
  for q = from, to, ${RECORD.size} do
    local units, ends = up('>I4I6', s, q + ${RECORD.held})
    ends = floor(ends * n / W)
    if ends < g - n then
      parts = parts .. sub(s, from, q - 1)
      from = q + ${RECORD.size}
    else
      held = held + units
      if ends > last then last = ends end
      if units > 0 and ends > lastHeld then lastHeld = ends end
    end
  end
  local records = parts .. sub(s, from, to)
  return held, last, records ~= '' and records or nil, lastHeld
end

-- \`kept\` and \`base\`, if granules have left that are more than \`most\` before the newest one
local function inWindow(s, z, bytes, most)
  local low, units = up(ENTRY[z], s)
  if most < 0 then return z, units end
  local _, base = up(ENTRY[z], s, bytes - z + 1)
  while true do
    local e, c = up(ENTRY[z], s, bytes - 2 * z + 1)
    if (low - e) % LOW[z] <= most then return bytes, base end
    bytes, base = bytes - z, c
  end
end

-- the newest granule with units, if there is one
local function newestOf(s, z, mark)
  local newest, units = up(ENTRY[z], s)
  for q = z + 1, #s, z do
    local e, c = up(ENTRY[z], s, q)
    if c ~= units then break end
    newest = e
  end
  return mark - (mark - newest) % LOW[z]
end

-- {granule, units} of those that count, the oldest first
local function listOf(s, z, kept, base, mark)
  local list, before = {}, base
  for q = kept - 2 * z + 1, 1, -z do
    local e, c = up(ENTRY[z], s, q)
    list[#list + 1] = {mark - (mark - e) % LOW[z], (c - before) % UNITS}
    before = c
  end
  return list
end

-- the entries of such a list. The newest granule stays without units, too: time does not step back behind it
local function entriesOf(list, z, mark)
  local out, at, sum = {}, #list + 2, 0
  out[at] = pack(ENTRY[z], 0, 0)
  for _, granule in ipairs(list) do
    sum = sum + granule[2]
    if granule[1] < mark and granule[2] > 0 then
      at = at - 1
      out[at] = pack(ENTRY[z], granule[1] % LOW[z], sum)
    end
  end
  at = at - 1
  out[at] = pack(ENTRY[z], mark % LOW[z], sum)
  return table.concat(out, '', at, #list + 2)
end

-- the entries of a value with one of a new granule
local function entriesWith(s, z, kept, g, units)
  if kept == 0 then return pack(ENTRY[z] .. sub(ENTRY[z], 2), g % LOW[z], units, 0, 0) end
  return pack(ENTRY[z] .. 'c' .. kept, g % LOW[z], units, s)
end

local function tailOf(z, shape, born, mark, till, records)
  local version = VERSION[z] + (till > 0 and 1 or 0) + (records and ${LEASED} or 0)
  local tail = pack(TAIL[z], born, floor(mark / LOW[z]), shape, version)
  if till > 0 then tail = pack('>I6', till) .. tail end
  return records and records .. pack('>I2', #records / ${RECORD.size}) .. tail or tail
end

-- when all units have left a sliding window that was charged in granule g last
local function endOf(g, n, W) return ceil((g + n + 1) * W / n) end

local function save(k, s, z, shape, born, mark, till, entries, emptyMs, isKept, records)
  local v = entries .. tailOf(z, shape, born, mark, till, records)
  if isTest or till == FOREVER then call('SET', k, v)
  else
    -- one that has got less stays as long as before: other processes must see its birth
    local stays = s and (isKept or born >= BIRTH) and call('PTTL', k) or 0
    call('SET', k, v, 'PX', max(max(emptyMs, till, now) - now + 1, stays))
  end
end
`
