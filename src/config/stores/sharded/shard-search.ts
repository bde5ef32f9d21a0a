// Which policy a list of keys has, on several shards: those of a round are asked at once, each one time.
import { MillraceError } from '../../../core/errors.js'
import type { ConfigStore, StoredPolicy, SyncConfigStore } from '../../config-store.js'
import { storeError } from '../../document-store.js'

export interface Shard {
  readonly name: string
  readonly store: ConfigStore
}

/** What a shard is asked for: the first of these keys that has a policy. */
export interface Ask {
  readonly shard: Shard
  readonly keys: readonly string[]
}

export type Answer = { readonly stored: StoredPolicy | undefined } | { readonly error: unknown }

/** A key at the shards that have the same of it. */
interface Slot {
  readonly key: string
  /** In the order in which they are asked: the next one if one does not answer. */
  readonly shards: readonly Shard[]
  tries: number
  /** The shard has a document among several keys that is no policy: this one is asked for by itself. */
  isAlone: boolean
  stored: StoredPolicy | undefined
  error: unknown
}

/**
 * Yields what is to be asked, and takes the answers in the same order.
 * @param chainsOf the shards of a key; while keys are moved also, as a second list, those that had it before. Then the
 * later version counts
 * @throws MillraceError what the first key has that is no policy; or the error of its last shard
 */
export function* search(
  keys: readonly string[],
  chainsOf: (key: string) => readonly (readonly Shard[])[],
): Generator<Ask[], StoredPolicy | undefined, Answer[]> {
  const slots = keys.map((key) => chainsOf(key).map((shards) => slotOf(key, shards)))
  yield* settle(slots.flat())
  // A key that was nowhere may have been moved between both answers. Where it is going it stays.
  const first = slots.findIndex((each) => each.some(({ stored }) => stored !== undefined))
  const before = first < 0 ? slots : slots.slice(0, first)
  const again = before.filter((each) => each.length > 1 && each.every(({ error }) => error === undefined))
  yield* settle(again.map((each) => Object.assign(each[0]!, { tries: 0 })))
  for (const each of slots) {
    const found = each.flatMap(({ stored }) => stored ?? [])
    if (found.length > 0) return found.reduce((a, b) => (b.version > a.version ? b : a))
    const failed = each.find(({ error }) => error !== undefined)
    if (failed !== undefined) throw failed.error
  }
  return undefined
}

function slotOf(key: string, shards: readonly Shard[]): Slot {
  return { key, shards, tries: 0, isAlone: false, stored: undefined, error: undefined }
}

function* settle(slots: readonly Slot[]): Generator<Ask[], void, Answer[]> {
  let open = slots
  while (open.length > 0) {
    const groups = [...groupsOf(open)]
    const answers = yield groups.map(({ shard, slots }) => ({ shard, keys: slots.map(({ key }) => key) }))
    open = groups.flatMap(({ shard, slots }, i) => take(shard, slots, answers[i]!))
  }
}

function* groupsOf(slots: readonly Slot[]): Generator<{ shard: Shard; slots: Slot[] }> {
  const groups = new Map<Shard, Slot[]>()
  for (const slot of slots) {
    const shard = slot.shards[slot.tries]!
    if (slot.isAlone) yield { shard, slots: [slot] }
    else groups.set(shard, [...(groups.get(shard) ?? []), slot])
  }
  for (const [shard, slots] of groups) yield { shard, slots }
}

/** Notes an answer. Returns what is to be asked again. The keys after one that has a policy don't matter. */
function take(shard: Shard, slots: readonly Slot[], answer: Answer): Slot[] {
  if (!('error' in answer)) {
    const { stored } = answer
    const slot = slots.find(({ key }) => key === stored?.key)
    if (slot !== undefined) slot.stored = stored
    return []
  }
  const { error } = answer
  const isDocument = error instanceof MillraceError && error.code === 'ERR_MILLRACE_INVALID_POLICY'
  if (isDocument && slots.length > 1) return slots.map((slot) => Object.assign(slot, { isAlone: true }))
  return slots.filter((slot) => {
    if (!isDocument && ++slot.tries < slot.shards.length) return true
    slot.error = isDocument ? error : shardError(shard, error)
    return false
  })
}

/** The error of a shard that does not answer. What it says about an argument stays. */
export function shardError({ name }: Shard, cause: unknown): MillraceError {
  const { code, option, value, expected } = storeError('store', cause)
  if (cause instanceof MillraceError && !['ERR_MILLRACE_CONFIG_STORE', 'ERR_MILLRACE_CLOSED'].includes(code))
    return cause
  return new MillraceError('ERR_MILLRACE_CONFIG_STORE', `shard ${name}: ${option}`, value, expected, {
    cause,
  })
}

/** @throws MillraceError `ERR_MILLRACE_CONFIG_STORE` that names the shard, and other errors as they are */
export async function at<T>(shard: Shard, act: (store: ConfigStore) => Promise<T>): Promise<T> {
  try {
    return await act(shard.store)
  } catch (error) {
    throw shardError(shard, error)
  }
}

export const answerOf = ({ shard, keys }: Ask): Promise<Answer> =>
  shard.store.find(keys).then(
    (stored) => ({ stored }),
    (error: unknown) => ({ error }),
  )

export function answerNow({ shard, keys }: Ask): Answer {
  try {
    return { stored: (shard.store as SyncConfigStore).findNow(keys) }
  } catch (error) {
    return { error }
  }
}
