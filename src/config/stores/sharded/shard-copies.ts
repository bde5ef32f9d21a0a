// Copies of a policy on several shards. All changes depend on the version that was read: a process that changes the
// policy at the same time makes them fail, and they are made again on what is there then.
import { MillraceError } from '../../../core/errors.js'
import type { PutOptions, StoredPolicy } from '../../config-store.js'
import { at, type Shard } from './shard-search.js'

const MOST_TRIES = 50

/** What a shard has of a key, and what a change of just that depends on. */
interface Seen {
  /** `'invalid'`: a document that is no policy. */
  readonly stored: StoredPolicy | 'invalid' | undefined
  readonly condition: PutOptions
}

export async function look(shard: Shard, key: string): Promise<Seen> {
  try {
    const stored = await at(shard, (store) => store.get(key))
    return { stored, condition: { ifVersion: stored?.version ?? null } }
  } catch (error) {
    if (codeOf(error) !== 'ERR_MILLRACE_INVALID_POLICY') throw error
    return { stored: 'invalid', condition: {} }
  }
}

const codeOf = (error: unknown): string | undefined =>
  error instanceof MillraceError ? error.code : undefined

/** Repeats a change until nobody else has changed the key at the same time. `act` returns whether all is done. */
export async function untilDone(key: string, act: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    try {
      if (await act()) return
    } catch (error) {
      if (codeOf(error) !== 'ERR_MILLRACE_CONFIG_CONFLICT') throw error
    }
  }
  const expected = 'shards in which nobody else changes this key all the time'
  throw new MillraceError('ERR_MILLRACE_CONFIG_CONFLICT', key, undefined, expected)
}

/**
 * Makes `to` have of the key what `from` has, also if that is nothing. Done when both were seen to be equal, after the
 * last change: of two that mirror at once, the later one sees what the other has done.
 */
export function mirror(key: string, from: Shard, to: Shard): Promise<void> {
  return untilDone(key, async () => {
    const [source, target] = await Promise.all([look(from, key), look(to, key)])
    if (source.stored === 'invalid' || isEqual(source.stored, target.stored)) return true
    if (source.stored === undefined) await at(to, (store) => store.delete(key, target.condition))
    else await copy(source.stored, to, target.condition)
    return false
  })
}

/** Copies the policy to `to`, unless that has a later one. */
export function advance(key: string, from: Shard, to: Shard): Promise<void> {
  return untilDone(key, async () => {
    // In this order: what is moved from one to the other meanwhile is seen in at least one.
    const source = await look(from, key)
    const target = await look(to, key)
    if (source.stored === undefined || source.stored === 'invalid') return true
    const { stored } = target
    if (stored !== undefined && (stored === 'invalid' || stored.version >= source.stored.version)) return true
    await copy(source.stored, to, target.condition)
    return true
  })
}

/** Gives a shard that has the key what `from` has, as long as it has it. */
export function refresh(key: string, from: Shard, to: Shard): Promise<void> {
  return untilDone(key, async () => {
    const [source, target] = await Promise.all([look(from, key), look(to, key)])
    if (target.stored === undefined || isEqual(source.stored, target.stored)) return true
    if (source.stored === undefined || source.stored === 'invalid') return true
    await copy(source.stored, to, target.condition)
    return false
  })
}

async function copy({ key, policy, version }: StoredPolicy, to: Shard, condition: PutOptions): Promise<void> {
  await at(to, (store) => store.put(key, policy, { ...condition, version }))
}

function isEqual(a: Seen['stored'], b: Seen['stored']): boolean {
  if (a === undefined || b === undefined || a === 'invalid' || b === 'invalid') return a === b
  return a.version === b.version && JSON.stringify(a.policy) === JSON.stringify(b.policy)
}
