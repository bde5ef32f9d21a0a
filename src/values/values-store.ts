import type { DecisionSource } from '../core/decision-source.js'
import { type Duration, parseDuration } from '../core/duration.js'
import { type ErrorCode, invalid } from '../core/errors.js'
import { CountingStore } from '../remote/counting-store.js'
import type { KeyNames } from '../remote/key-names.js'
import type { RemoteRule } from '../remote/remote-rule.js'
import type { RemoteStore } from '../remote/remote-store.js'
import { type ValuesPlace, ValuesRunner } from './values-runner.js'

/** A store of values, as a limiter needs it. */
export interface ValuesPlan {
  readonly owner: object
  readonly place: ValuesPlace
  readonly rules: readonly RemoteRule[]
  /** Of the values. Only the first name of a key is used. */
  readonly names: Pick<KeyNames, 'of'>
  readonly maxKeys: number
  readonly source: DecisionSource
  readonly valueError: ErrorCode
  readonly skewMs: number
  readonly testTime: (() => number) | undefined
}

/** Swaps of one call that may fail. Each one fails because another process has changed the key. */
const MOST_TRIES = 64

/** The store of a limiter whose keys have one value each, for all rules. */
export function valuesStore(plan: ValuesPlan): RemoteStore {
  const { place, names, rules, testTime, skewMs } = plan
  const ofValue = {
    of(key: string): string[] {
      const name = names.of(key)[0]!
      return rules.map(() => name)
    },
  }
  const time = () => testTime?.() ?? 0
  return new CountingStore({ ...plan, names: ofValue, time }, new ValuesRunner(place, skewMs, MOST_TRIES))
}

const DEFAULT_SKEW = '100ms'
const LONGEST_SKEW_MS = 60_000

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function checkSkew(clockSkew: unknown = DEFAULT_SKEW): number {
  const ms = clockSkew === 0 ? 0 : parseDuration(clockSkew as Duration, 'clockSkew')
  if (Number.isInteger(ms) && ms <= LONGEST_SKEW_MS) return ms
  throw invalid('clockSkew', clockSkew, 'whole milliseconds, at most a minute')
}
