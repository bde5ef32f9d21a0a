import type { RemoteRule } from '../../remote/remote-rule.js'
import { KEY_FAULT } from '../../remote/reply-codes.js'
import { UNITS_RANGE } from '../../values/log-count.js'
import { type Entry, type SavedCount, ValueFault } from '../../values/saved-count.js'
import type { Command } from '../clients/connection.js'
import { LOG_VERSION } from './log-script.js'

/** Members of a sorted set and their scores, in order. */
export type Members = readonly (readonly [member: string, score: number])[]

const HEADERS = ['v', 'b', 's', 't', 'u']

/**
 * The count that a sorted set of `log-script.ts` has; undefined if there is none.
 * @throws ValueFault
 */
export function savedIn(members: Members, { shape, windowMs }: RemoteRule): SavedCount | undefined {
  if (members.length === 0) return undefined
  const header = new Map(members.filter(([member]) => HEADERS.includes(member)))
  if (header.size < HEADERS.length) throw new ValueFault(KEY_FAULT.CUT)
  const [version, born, sum, newest, untilMs] = HEADERS.map((member) => 0 - header.get(member)!) as [
    ...[number, number, number, number, number],
  ]
  if (Math.floor(version / 65_536) !== LOG_VERSION) throw new ValueFault(KEY_FAULT.VERSION)
  if (version % 65_536 !== shape) throw new ValueFault(KEY_FAULT.SHAPE)
  const entries = members.filter(([member]) => !header.has(member)).map(([member, at]) => entryOf(member, at))
  const serial = Math.floor(sum / UNITS_RANGE)
  return { shape, born, untilMs, endMs: Math.ceil(newest / 1_000) + windowMs, newest, serial, entries }
}

function entryOf(member: string, at: number): Entry {
  const [, units, serial] = /^(\d+):(\d+)$/.exec(member) ?? []
  if (units === undefined) throw new ValueFault(KEY_FAULT.CUT)
  return { at, units: Number(units), serial: Number(serial) }
}

/** The commands that change a set from one count to another. */
export function changesOf(name: string, before: SavedCount | undefined, after: SavedCount): Command[] {
  const { shape, born, serial, newest, untilMs } = after
  const [old, present] = [membersOf(before), membersOf(after)]
  const removed = [...old.keys()].filter((member) => !present.has(member))
  const added = [...present].filter(([member]) => !old.has(member))
  const sum = after.entries.reduce((all, { units }) => all + units, 0)
  const header = [LOG_VERSION * 65_536 + shape, born, serial * UNITS_RANGE + sum, newest, untilMs]
  const members = [
    ...HEADERS.flatMap((member, i) => [String(-header[i]!), member]),
    ...added.flatMap(([member, at]) => [String(at), member]),
  ]
  return [...(removed.length > 0 ? [['ZREM', name, ...removed]] : []), ['ZADD', name, ...members]]
}

const membersOf = (saved: SavedCount | undefined): Map<string, number> =>
  new Map(saved?.entries.map(({ at, units, serial }) => [`${units}:${serial}`, at]))
