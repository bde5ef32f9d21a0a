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
// A message is binary (`lease-message.ts`), and the script makes no function and few tables and strings on its way: each
// takes Redis longer than to read a number. So its parts are texts that stand where they run.
import type { RemoteRule } from '../../remote/remote-rule.js'
import { TIME } from '../packed/strict-script.js'
import { FORMAT, LeaseStatus } from './lease-message.js'
import { constantsOf, READ } from './lease-read.js'
import { REPLY, WRITE } from './lease-write.js'

/**
 * The source of the script for sliding windows, and for the time of the server or a test.
 *
 * KEYS: one of each rule. ARGV: the message, and in a test the time in milliseconds.
 *
 * The reply is `KEY_FAULT` of a value that is none; or `LeaseStatus.OLD`; or `LeaseStatus`, the time, leased units, nodes
 * with a lease, and for each rule birth, remaining and reset; if the key is blocked, for each rule the end of the block;
 * if requests wait, for each rule the granule, when to ask again, and for each request 1 or 0.
 */
export function leaseScript(rules: readonly RemoteRule[], isTest: boolean): string {
  const isOne = rules.length === 1
  const [begin, end] = isOne ? ['', ''] : ['for i = 1, R do', 'end']
  return [
    DECLARATIONS,
    isTest ? 'local now = ARGV[2] + 0' : TIME,
    `local R, i, st = ${rules.length}, 1, ${isOne ? 'nil' : '{}'}`,
    `local m = ARGV[1]
local T, id, seq, wants, requests, at = up('>${FORMAT.head}', m)
local isBlocked, isFull, isTest = false, false, ${isTest}`,
    begin,
    constantsOf(rules),
    READ,
    isOne ? '' : `st[i] = {${FIELDS.join(', ')}}`,
    end,
    decideBy(isOne),
    `local status = (extends and ${LeaseStatus.LEASED} or ${LeaseStatus.SETTLED}) + (isBlocked and ${LeaseStatus.BLOCKED} or 0)
local reply, o = {status, now, leased, ${isOne ? 'active' : `st[1][${indexOf('active')}]`}, nil, nil, nil}, 4
local wait, tills, marks = 0, isBlocked and {}, requests > 0 and {}`,
    begin,
    isOne ? '' : `${constantsOf(rules)}\nlocal ${FIELDS.join(', ')} = unpack(st[i], 1, ${FIELDS.length})`,
    WRITE,
    end,
    REPLY,
  ].join('\n')
}

const DECLARATIONS = `
local call, up, pack, sub, find, rep = redis.call, struct.unpack, struct.pack, string.sub, string.find, string.rep`

/** What is known of a rule after its value has been read. With several rules these are in a table of each. */
const FIELDS = (
  'k s born mark till kept base sum g clock rest count mine others last lastHeld ends active spent least own free ' +
  'added fresh list l refused'
).split(' ')
const indexOf = (field: string): number => FIELDS.indexOf(field) + 1

/** Decides the requests that wait, in their order, then leases. */
function decideBy(isOne: boolean): string {
  const of = (field: string) => (isOne ? field : `st[i][${indexOf(field)}]`)
  const each = (body: string) => (isOne ? body : `for i = 1, R do ${body} end`)
  return `
local admitted = requests > 0 and {}
for d = 1, requests do
  local from, isAdmitted = at, not isBlocked
  local cost
  ${each(`
  cost, at = up('>I4', m, at)
  if cost > 0 and cost > ${of('free')} then isAdmitted = false end`)}
  at = from
  ${each(`
  cost, at = up('>I4', m, at)
  if not isAdmitted then
    if not ${of('refused')} or cost < ${of('refused')} then ${of('refused')} = cost end
  elseif cost > 0 then
    ${of('fresh')}, ${of('added')}, ${of('free')} = ${of('fresh')} + cost, ${of('added')} + cost, ${of('free')} - cost
  end`)}
  admitted[d] = isAdmitted and 1 or 0
end
local extends, leased = wants > 0 and not isBlocked and not isFull, 0
if extends then
  leased = wants
  ${each(`
  local share, free = ${of('free')} / (2 * ${of('active')}), ${of('free')}
  share = share - share % 1
  if share < ${of('least')} then share = ${of('least')} end
  if share > free then share = free end
  if share < leased then leased = share end`)}
  if leased < 0 then leased = 0 end
end`
}
