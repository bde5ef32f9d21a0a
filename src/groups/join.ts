import type { AsyncLimiterGroup } from '../api/async-limiter-group.js'
import { invalid } from '../core/errors.js'
import { AsyncFacade } from '../limiters/async-facade.js'
import { type GroupMember, InlineMember } from '../limiters/group-member.js'
import { InlineLimiter } from '../limiters/inline-limiter.js'
import type { PoolLimiter } from '../limiters/pool-limiter.js'
import { AsyncGroup } from './async-group.js'
import { InlineGroup } from './inline-group.js'
import { isJoining, JOIN, type Joining } from './joining.js'

/** Makes the group of these members. @throws MillraceError as `group` */
export function join(members: unknown): InlineGroup | AsyncLimiterGroup {
  const entries = entriesOf(members)
  if (entries.some(([, limiter]) => isJoining(limiter))) return joinElsewhere(entries)
  const own = membersOf(entries)
  const isInline = own.every((member) => member instanceof InlineMember)
  return isInline ? new InlineGroup(own) : new AsyncGroup(own)
}

type Entries = readonly (readonly [name: string, limiter: unknown])[]

/** The members by their names, each once. @throws MillraceError */
function entriesOf(members: unknown): Entries {
  const given: unknown = members
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalid('members', given, 'an object with limiters by their names')
  }
  const entries = Object.entries(given) as [name: string, limiter: unknown][]
  if (entries.length === 0) throw invalid('members', given, 'an object with at least one limiter')
  return entries
}

function membersOf(entries: Entries): GroupMember[] {
  const names = new Map<unknown, string>()
  return entries.map(([name, limiter]) => {
    const option = `members.${name}`
    if (!isOwn(limiter)) throw invalid(option, limiter, 'a limiter of createLimiter or attachLimiter')
    checkOnce(names, name, limiter)
    return limiter.toMember(name)
  })
}

/** The group of limiters in a store. @throws MillraceError if others are among them */
function joinElsewhere(entries: Entries): AsyncLimiterGroup {
  const names = new Map<unknown, string>()
  const all = entries.map(([name, limiter]): [string, Joining] => {
    const expected = 'a limiter that decides where the others do: all members on Redis, or none'
    if (!isJoining(limiter)) throw invalid(`members.${name}`, limiter, expected)
    checkOnce(names, name, limiter)
    return [name, limiter]
  })
  return all[0]![1][JOIN](all)
}

function checkOnce(names: Map<unknown, string>, name: string, limiter: unknown): void {
  const earlier = names.get(limiter)
  if (earlier !== undefined)
    throw invalid(`members.${name}`, limiter, `a limiter other than members.${earlier}`)
  names.set(limiter, name)
}

function isOwn(limiter: unknown): limiter is InlineLimiter<never> | PoolLimiter {
  return limiter instanceof InlineLimiter || (limiter instanceof AsyncFacade && 'toMember' in limiter)
}
