// One key in the cache of policies.
import type { StoredPolicy } from '../config/config-store.js'
import { UNKNOWN } from './plan.js'

/** The policy of one key. */
export interface CachedPolicy {
  /** The plan of the key; {@link UNKNOWN} if its policy is not known. */
  readonly plan: number
  /** The policy; undefined: the key has none, or it is not known. */
  readonly found: StoredPolicy | undefined
  /** Whether the cache has it still. */
  readonly isKept: boolean
}

/** What a look-up reads comes first. */
export class Entry implements CachedPolicy {
  plan = UNKNOWN
  generation = 0
  isKept = false
  usedMs = 0
  expiresMs = 0
  readonly key: string
  /** The last plan; {@link UNKNOWN} if the key may have counted by another one since. */
  lastPlan = UNKNOWN
  found: StoredPolicy | undefined = undefined
  usableUntilMs = 0
  pausedUntilMs = 0
  /** The generation in which the pause began. */
  pausedGeneration = 0
  /** The version of an answer that was older than what is known. */
  olderVersion = 0
  loading: Promise<void> | undefined = undefined
  /** Counts the reads of this key, so that one that was given up changes nothing. */
  loads = 0
  /** Whether the policy has changed while it is being read. */
  isDirty = false

  constructor(key: string) {
    this.key = key
  }
}
