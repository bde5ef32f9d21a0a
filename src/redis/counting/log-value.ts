import type { RemoteRule } from '../../remote/remote-rule.js'
import type { Command } from '../clients/connection.js'
import { BIRTH_RANGE_MS, KEY_FAULT, REFUNDS } from '../script-codes.js'
import { LOG_VERSION, MARK_RANGE, SERIALS, UNITS_RANGE } from './log-script.js'

/** The end of a block that has none, in milliseconds. */
export const FOREVER_MS = 2 ** 48 - 1

interface Charge {
  readonly member: string
  readonly atUs: number
  readonly units: number
}

const HEADERS = ['v', 'b', 's', 't', 'u']

/**
 * The sorted set of one key and rule, as `log-script.ts` describes it, for the transactions of `optimistic: true`. It is
 * read as a whole, changed here, and its changes are the commands of the transaction.
 */
export class LogValue {
  readonly rule: RemoteRule
  readonly limit: number
  readonly #name: string
  readonly #nowUs: number
  /** A clock that steps back stands still at the newest charge. */
  readonly gUs: number
  #exists = false
  born: number
  #serial = 0
  #markUs = 0
  untilMs = 0
  /** Those that count, oldest first. */
  #charges: Charge[] = []
  #hasExpired = false
  readonly #added = new Map<string, number>()
  readonly #removed: string[] = []
  #isChanged = false
  /** Milliseconds for which a key without charges stays, if it had no end. */
  #staysMs: number | undefined

  private constructor(name: string, rule: RemoteRule, limit: number, nowUs: number, gUs: number) {
    this.#name = name
    this.rule = rule
    this.limit = limit
    this.#nowUs = nowUs
    this.gUs = gUs
    this.born = this.nowMs
  }

  /**
   * @param members each member of the set and its score, in order
   * @returns the value, or one of {@link KEY_FAULT}
   */
  static read(
    name: string,
    rule: RemoteRule,
    limit: number,
    members: readonly (readonly [member: string, score: number])[],
    nowUs: number,
  ): LogValue | number {
    if (members.length === 0) return new LogValue(name, rule, limit, nowUs, nowUs)
    const header = new Map(members.filter(([member]) => HEADERS.includes(member)))
    if (header.size < HEADERS.length) return KEY_FAULT.CUT
    const [version, born, sum, markUs, untilMs] = HEADERS.map((member) => 0 - header.get(member)!) as [
      ...[number, number, number, number, number],
    ]
    if (Math.floor(version / 65_536) !== LOG_VERSION) return KEY_FAULT.VERSION
    if (version % 65_536 !== rule.shape) return KEY_FAULT.SHAPE
    const value = new LogValue(name, rule, limit, nowUs, Math.max(nowUs, markUs))
    value.#exists = true
    value.born = born
    value.#serial = Math.floor(sum / UNITS_RANGE)
    value.#markUs = markUs
    value.untilMs = untilMs
    for (const [member, atUs] of members) {
      if (header.has(member)) continue
      const units = /^(\d+):\d+$/.exec(member)?.[1]
      if (units === undefined) return KEY_FAULT.CUT
      if (value.#counts(atUs)) value.#charges.push({ member, atUs, units: Number(units) })
      else value.#hasExpired = true
    }
    return value
  }

  get nowMs(): number {
    return Math.floor(this.#nowUs / 1_000)
  }

  get isBlocked(): boolean {
    return this.untilMs > this.nowMs
  }

  /** The units that count. */
  get sum(): number {
    return sumOf(this.#charges)
  }

  /** The units of the last milliseconds. */
  usedInLast(ms: number): number {
    return sumOf(this.#charges.filter(({ atUs }) => this.gUs - atUs < ms * 1_000))
  }

  /** Milliseconds until so many of the units that count have left. */
  leavesMs(units: number): number {
    let left = units
    let lastUs = this.gUs
    for (const { atUs, units: own } of this.#charges) {
      lastUs = atUs
      left -= own
      if (left <= 0) break
    }
    return this.#untilLeftMs(lastUs)
  }

  /** Milliseconds until nothing counts. */
  get emptyMs(): number {
    const newest = this.#charges.at(-1)
    return newest === undefined ? 0 : this.#untilLeftMs(newest.atUs)
  }

  /** Milliseconds for which the value stays after a charge. */
  get lastsMs(): number {
    return this.#untilLeftMs(this.gUs)
  }

  /** Charges as of some time ago. Returns the mark of the receipt, or -1. */
  charge(cost: number, ageMs = 0): number {
    if (ageMs * 1_000 >= this.#windowUs) return -1
    const units = Math.min(cost, MARK_RANGE - 1, UNITS_RANGE - 1 - this.sum)
    if (units <= 0) return -1
    this.#serial = (this.#serial + 1) % SERIALS
    this.#markUs = this.gUs
    this.#isChanged = true
    this.#add({ member: `${units}:${this.#serial}`, atUs: Math.max(1, this.gUs - ageMs * 1_000), units })
    while (this.#charges.length > this.rule.rule.units) this.#remove(this.#charges[0]!)
    return this.#serial * MARK_RANGE + units
  }

  /** Takes out up to `cost` units, the oldest first. Returns how many, and how long ago the newest were charged. */
  refund(cost: number): { given: number; newest: number; ageMs: number } {
    let given = 0
    let newest = 0
    let ageMs = 0
    for (const charge of [...this.#charges]) {
      if (given === cost) break
      newest = this.#take(charge, cost - given)
      given += newest
      ageMs = Math.floor((this.gUs - charge.atUs) / 1_000)
    }
    if (given > 0) this.#countRefund()
    return { given, newest, ageMs }
  }

  /** Gives back up to `cost` units of a charge that still counts. Returns how many. */
  giveBack(mark: number, birth: number, cost: number): number {
    const member = `${mark % MARK_RANGE}:${Math.floor(mark / MARK_RANGE)}`
    const charge = this.#charges.find((each) => each.member === member)
    return charge === undefined || birth !== this.born || cost === 0 ? 0 : this.#take(charge, cost)
  }

  /** @param ms -1: for ever */
  block(ms: number): void {
    this.untilMs = ms < 0 ? FOREVER_MS : Math.min(this.nowMs + ms, FOREVER_MS - 1)
    this.#isChanged = true
  }

  /** Returns whether it was blocked. */
  unblock(): boolean {
    const was = this.isBlocked
    this.untilMs = 0
    this.#isChanged ||= this.#exists
    return was
  }

  /** The value stays until its charges would have left: so other processes see the birth that they know. */
  clear(): void {
    if (!this.#exists) return
    for (const charge of [...this.#charges]) this.#remove(charge)
    if (this.untilMs === FOREVER_MS) this.#staysMs = 2 * this.rule.windowMs
    this.untilMs = 0
    this.#countRefund()
  }

  /** What the transaction writes. @param expires whether the key ends by itself: not in a test's time */
  commands(expires: boolean): Command[] {
    if (!this.#isChanged) return []
    const name = this.#name
    const score = this.#serial * UNITS_RANGE + this.sum
    const header = [
      -(LOG_VERSION * 65_536 + this.rule.shape),
      -this.born,
      -score,
      -this.#markUs,
      -this.untilMs,
    ]
    const members = [
      ...HEADERS.flatMap((member, i) => [String(header[i]), member]),
      ...[...this.#added].flatMap(([member, atUs]) => [String(atUs), member]),
    ]
    const commands: Command[] = []
    if (this.#hasExpired) commands.push(['ZREMRANGEBYSCORE', name, '(0', String(this.gUs - this.#windowUs)])
    if (this.#removed.length > 0) commands.push(['ZREM', name, ...this.#removed])
    commands.push(['ZADD', name, ...members])
    if (expires) commands.push(this.#expiry(name))
    return commands
  }

  #expiry(name: string): Command {
    if (this.untilMs === FOREVER_MS) return ['PERSIST', name]
    const endUs = Math.max(this.#markUs + this.#windowUs, this.untilMs * 1_000, this.#nowUs)
    const ms = Math.ceil((endUs - this.#nowUs) / 1_000) + 1
    return ['PEXPIRE', name, String(Math.max(ms, this.#staysMs ?? 0))]
  }

  get #windowUs(): number {
    return this.rule.windowMs * 1_000
  }

  #counts(atUs: number): boolean {
    return this.gUs - atUs < this.#windowUs
  }

  #untilLeftMs(atUs: number): number {
    return Math.ceil((atUs + this.#windowUs - this.#nowUs) / 1_000)
  }

  #add(charge: Charge): void {
    this.#added.set(charge.member, charge.atUs)
    const after = this.#charges.findLastIndex((each) => isBefore(each, charge))
    this.#charges.splice(after + 1, 0, charge)
  }

  #remove(charge: Charge): void {
    this.#isChanged = true
    this.#charges.splice(this.#charges.indexOf(charge), 1)
    if (!this.#added.delete(charge.member)) this.#removed.push(charge.member)
  }

  #take(charge: Charge, most: number): number {
    const { member, atUs, units } = charge
    const less = Math.min(units, most)
    this.#remove(charge)
    if (less < units)
      this.#add({ member: `${units - less}${member.slice(member.indexOf(':'))}`, atUs, units: units - less })
    return less
  }

  #countRefund(): void {
    this.#isChanged = true
    const refunds = (Math.floor(this.born / BIRTH_RANGE_MS) % REFUNDS) + 1
    this.born = refunds * BIRTH_RANGE_MS + (this.born % BIRTH_RANGE_MS)
  }
}

const sumOf = (charges: readonly Charge[]): number => charges.reduce((sum, { units }) => sum + units, 0)

/** The order of a sorted set. */
const isBefore = (a: Charge, b: Charge): boolean =>
  a.atUs < b.atUs || (a.atUs === b.atUs && a.member < b.member)
