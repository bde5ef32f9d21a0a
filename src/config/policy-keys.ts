// Keys of policies: those of clients, and prefixes of them.
import { MillraceError } from '../core/errors.js'

/** The longest key, in UTF-16 units. (A limiter takes longer keys; they get the policy of a prefix, or the default.) */
export const MAX_POLICY_KEY = 512
/** The most prefixes of a key that are looked up: `a:*`, `a:b:*` and so on. */
const MOST_LEVELS = 8

/** The keys whose policies apply to this key, the most specific first: itself, then its prefixes. */
export function candidatesOf(key: string): string[] {
  const candidates: string[] = []
  let at = -1
  for (let level = 0; level < MOST_LEVELS; level++) {
    at = key.indexOf(':', at + 1)
    if (at < 0 || at >= MAX_POLICY_KEY - 1) break
    candidates.push(`${key.slice(0, at + 1)}*`)
  }
  if (key.length <= MAX_POLICY_KEY && candidates.at(-1) !== key) candidates.push(key)
  return candidates.reverse()
}

/** The prefix in a key such as `'user:*'`, `'user:'`; undefined for the key of a client. */
export function prefixIn(key: string): string | undefined {
  return key.endsWith(':*') ? key.slice(0, -1) : undefined
}

/** How many of the keys begin with the prefix. */
export function countKeys(keys: Iterable<string>, prefix: string): number {
  let count = 0
  for (const key of keys) if (key.startsWith(prefix)) count++
  return count
}

/** Whether a store may have a policy of this key. A limiter is asked for others too. */
export const mayHavePolicy = (key: string): boolean =>
  key.length > 0 && key.length <= MAX_POLICY_KEY && key.isWellFormed() && !key.includes('\0')

/** @throws MillraceError `ERR_MILLRACE_INVALID_KEY` */
export function checkPolicyKey(key: unknown, option = 'key'): asserts key is string {
  if (typeof key !== 'string' || key.length === 0 || key.length > MAX_POLICY_KEY || !key.isWellFormed()) {
    const expected = `a string of 1 to ${MAX_POLICY_KEY} characters without lone surrogates`
    throw new MillraceError('ERR_MILLRACE_INVALID_KEY', option, key, expected)
  }
  if (key.includes('\0')) {
    throw new MillraceError('ERR_MILLRACE_INVALID_KEY', option, key, 'a key without NUL characters')
  }
  const prefix = prefixIn(key)
  if (prefix === undefined) return
  const levels = prefix.split(':').length - 1
  if (levels <= MOST_LEVELS) return
  const expected = `a prefix of at most ${MOST_LEVELS} levels, each of which ends at a colon`
  throw new MillraceError('ERR_MILLRACE_INVALID_KEY', option, key, expected)
}
