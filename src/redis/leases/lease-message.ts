// What a node sends about one key, and what the script answers: see `lease-script.ts`.
//
//   message: T 6 | node 8 | seq 4 | wants 4 | requests 2 | rule, rule, ... | units 4 of each request in each rule
//   rule:    limit 4 | held 4 | spent 6 | acked 6 | least 4 | ages 2 | age, age, ... the newest first
//   age:     units 4 | milliseconds 6
import { checkFault } from '../../remote/reply.js'
import { isFault, NO_MARK } from '../../remote/reply-codes.js'

/** Formats of `struct`, without the byte order. `record`: that of a value, after the node. */
export const FORMAT = {
  head: 'I6c8I4I4I2',
  rule: 'I4I4I6I6I4I2',
  age: 'I4I6',
  ageBytes: 10,
  record: 'I4I6I4I6',
} as const
const [HEAD_BYTES, RULE_BYTES, AGE_BYTES, UNITS_BYTES] = [24, 26, FORMAT.ageBytes, 4]

/**
 * What a reply begins with. `OLD`: a later message came before; this one has changed nothing. `LEASED`: the lease lasts T
 * from now. `BLOCKED` is added if the key is.
 */
export const LeaseStatus = { OLD: 0, SETTLED: 1, LEASED: 2, BLOCKED: 4 } as const

/** Numbers of a reply before those of the rules, and of each rule. */
const [HEAD_FIELDS, RULE_FIELDS] = [4, 3]

/** Numbers of units have four bytes. No limit is near: a larger request is never admitted. */
const MOST_UNITS = 2 ** 32 - 1
const MOST_COUNT = 2 ** 16 - 1

/**
 * The ages that a node tells of at most: what it has spent closer together is told as one. Each takes the server a
 * twentieth of what a strict check does. A chunk that lasts long is of a key of which much is free: its units need not be
 * dated so well.
 */
export const MOST_AGES = 4

/** Units that were spent within a short time, as of the last of them. */
export interface SpentUnits {
  readonly units: number
  /** A fraction of a millisecond is cut off: no unit counts too short. */
  readonly ageMs: number
}

/** What a node tells of a key in one rule. All but the age are whole numbers. */
export interface LeasedRule {
  /** In units, as of now. */
  readonly limit: number
  /** What it keeps of its lease. All else that was granted comes back. */
  readonly held: number
  /** What it has spent of this key since it began. */
  readonly spent: number
  /** Of that, what it had told in the last message that was answered. Counts if the server has no record. */
  readonly acked: number
  /** It gets so many units, if they are free, even if that is more than its share. */
  readonly least: number
  /** What it has spent of late, the oldest first: at least `spent` less what the server knows, else as of now. */
  readonly ages: readonly SpentUnits[]
}

/** A message of a node about one key. */
export interface LeaseMessage {
  /** Eight random bytes: one life of a node. */
  readonly id: Uint8Array
  /** 1 to 2^32 - 1: one more with each message of this node about this key. */
  readonly seq: number
  /** How long the lease lasts from now, in whole milliseconds. */
  readonly leaseMs: number
  /** Units that it asks for in each rule. 0: the lease ends as before. */
  readonly wants: number
  /** Requests that wait: of each, its units in each rule. They are decided in their order, by all rules or none. */
  readonly direct: readonly (readonly number[])[]
  readonly rules: readonly LeasedRule[]
}

/** A key in one rule after a message. */
export interface LeaseReplyRule {
  /** Of the value; above 2^43 the count of refunds by key and clearings, as in strict limiters. */
  readonly birth: number
  /** The granule of the requests that were admitted: with `birth` the receipt of each. -1: none was asked. */
  readonly mark: number
  /** Units that nobody has spent or holds. 0 if the key is blocked. */
  readonly remaining: number
  /** When nothing counts any more, if nothing else happens: milliseconds from now. Infinity: blocked for ever. */
  readonly resetMs: number
  /** The server's time, or 0: not blocked; Infinity: for ever. */
  readonly blockedUntilMs: number
}

export interface LeaseReply {
  /** The server's time. */
  readonly nowMs: number
  /** Whether the lease lasts T from now. */
  readonly extends: boolean
  /** Units that were granted in each rule, in addition to those told as held. */
  readonly leased: number
  /** Nodes whose lease has not ended, and this one. */
  readonly active: number
  /** When it is worth while to ask again for the least that was refused; 0: nothing was; Infinity: blocked for ever. */
  readonly waitMs: number
  /** Of each request. */
  readonly admitted: readonly boolean[]
  readonly rules: readonly LeaseReplyRule[]
}

/** The arguments of the script. @param testTimeMs the time of a test, for its script */
export function leaseArguments(message: LeaseMessage, testTimeMs?: number): (string | Buffer)[] {
  const bytes = encode(message)
  return testTimeMs === undefined ? [bytes] : [bytes, String(testTimeMs)]
}

function encode({ id, seq, leaseMs, wants, direct, rules }: LeaseMessage): Buffer {
  const ages = rules.reduce((sum, rule) => sum + rule.ages.length, 0)
  const perRule = RULE_BYTES * rules.length + AGE_BYTES * ages
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + perRule + UNITS_BYTES * rules.length * direct.length)
  checkCount(direct.length)
  let at = bytes.writeUIntBE(leaseMs, 0, 6)
  bytes.set(id, at)
  at = bytes.writeUInt32BE(seq, at + 8)
  at = bytes.writeUInt32BE(unitsOf(wants), at)
  at = bytes.writeUInt16BE(direct.length, at)
  for (const rule of rules) at = writeRule(bytes, at, rule)
  for (const costs of direct) for (const units of costs) at = bytes.writeUInt32BE(unitsOf(units), at)
  return bytes
}

function writeRule(bytes: Buffer, start: number, rule: LeasedRule): number {
  const { limit, held, spent, acked, least, ages } = rule
  checkCount(ages.length)
  let at = bytes.writeUInt32BE(unitsOf(limit), start)
  at = bytes.writeUInt32BE(held, at)
  at = bytes.writeUIntBE(spent, at, 6)
  at = bytes.writeUIntBE(acked, at, 6)
  at = bytes.writeUInt32BE(unitsOf(least), at)
  at = bytes.writeUInt16BE(ages.length, at)
  const end = at + AGE_BYTES * ages.length
  // The script needs them in order. A clock that stepped makes no unit older than one that was spent before it.
  let youngest = Number.POSITIVE_INFINITY
  for (const [i, { units, ageMs }] of ages.entries()) {
    youngest = Math.min(youngest, Math.max(0, Math.floor(ageMs)))
    const place = end - AGE_BYTES * (i + 1)
    bytes.writeUIntBE(youngest, bytes.writeUInt32BE(units, place), 6)
  }
  return end
}

const unitsOf = (units: number): number => Math.min(units, MOST_UNITS)

/** @throws RangeError for more than the message can have */
function checkCount(count: number): void {
  if (count > MOST_COUNT) throw new RangeError(`a lease message has at most ${MOST_COUNT} requests, and ages`)
}

const timeOf = (ms: number): number => (ms < 0 ? Number.POSITIVE_INFINITY : ms)

/**
 * Reads the reply to a message.
 * @returns undefined if a later message of this node came before: this one has changed nothing
 * @throws MillraceError `ERR_MILLRACE_REDIS_VALUE` if a value of the key is not one of these rules
 */
export function readLeaseReply(
  reply: readonly number[],
  { direct, rules }: Pick<LeaseMessage, 'direct' | 'rules'>,
  key: string,
): LeaseReply | undefined {
  const [status, nowMs, leased, active] = reply as [number, number, number, number]
  if (isFault(status)) checkFault(status, key)
  if (status === LeaseStatus.OLD) return undefined
  const isBlocked = status > LeaseStatus.BLOCKED
  const tillsAt = HEAD_FIELDS + RULE_FIELDS * rules.length
  const marksAt = tillsAt + (isBlocked ? rules.length : 0)
  const waitAt = marksAt + rules.length
  return {
    ...{ nowMs, extends: status === LeaseStatus.LEASED, leased, active, waitMs: timeOf(reply[waitAt] ?? 0) },
    admitted: direct.map((_, i) => reply[waitAt + 1 + i] === 1),
    rules: rules.map((_, i) => {
      const at = HEAD_FIELDS + RULE_FIELDS * i
      const [birth, remaining, resetMs] = [reply[at]!, reply[at + 1]!, timeOf(reply[at + 2]!)]
      const mark = reply[marksAt + i] ?? NO_MARK.NOTHING
      return { birth, mark, remaining, resetMs, blockedUntilMs: isBlocked ? timeOf(reply[tillsAt + i]!) : 0 }
    }),
  }
}
