import type { AsyncLimiter } from '../api/async-limiter.js'
import { memoryConfig } from '../config/memory.js'
import { MillraceError } from '../core/errors.js'
import { CONFIG_OPTIONS } from '../core/option-names.js'
import type { Rules } from '../core/rule.js'
import { RULE_OPTIONS } from '../core/rule-options.js'
import type { TextKeys } from '../memory/text-keys.js'
import { AsyncConfiguredLimiter, type AsyncMember } from './async-configured-limiter.js'
import { type ConfigOptions, checkConfig, checkStore } from './options.js'
import { MOST_WINDOWS } from './plan.js'
import { PolicyChoice } from './policy-choice.js'
import { type PolicyShape, policyShapeOf, shownTag } from './policy-shape.js'

/** How a limiter on a server is made. */
export interface RemoteMaker<Options> {
  /** Returns what all its limiters have together. @throws MillraceError */
  check(options: Options): { readonly outages: unknown }
  make(options: Options): AsyncMember
}

/** Keys that are cached without another number: as many as a limiter in memory has by default. */
const CACHED_KEYS = 100_000
/** Characters that a member adds to the prefix of its keys. */
const TAG = 9
const LONGEST_PREFIX = 64 - TAG

/**
 * A limiter on a server that takes its rules from a configuration store. Policies with other windows than the default
 * have limiters of their own, with names of keys of their own.
 */
export function configuredRemote<Options>(
  options: ConfigOptions & { readonly prefix: string },
  { check, make }: RemoteMaker<Options>,
): AsyncLimiter {
  const settings = checkConfig(options, CACHED_KEYS)
  const { prefix } = options
  if (typeof prefix === 'string' && prefix.length > LONGEST_PREFIX) {
    const expected = `at most ${LONGEST_PREFIX} characters with config: windows of policies add ${TAG}`
    throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'prefix', prefix, expected)
  }
  const others: Record<string, unknown> = Object.fromEntries(
    Object.entries(options).filter(
      ([name]) => !CONFIG_OPTIONS.includes(name) && !RULE_OPTIONS.includes(name),
    ),
  )
  const shape = policyShapeOf(settings.rules)
  const optionsOf = (own: object, ownPrefix: string) =>
    ({ ...others, ...own, prefix: ownPrefix }) as unknown as Options
  const optionsFor = ({ policy, tag }: PolicyShape) => optionsOf(policy!, `${prefix}:${shownTag(tag)}`)
  const maker = {
    refusalOf(other: PolicyShape): string | undefined {
      try {
        check(optionsFor(other))
        return undefined
      } catch (error) {
        if (error instanceof MillraceError) return `one whose ${error.option} is ${error.expected}`
        throw error
      }
    },
    make: (other: PolicyShape) => make(optionsFor(other)),
  }
  const own = optionsOf(settings.policy, prefix)
  others.outages = check(own).outages
  const first = { limiter: make({ ...own, outages: others.outages }), shape }
  return new AsyncConfiguredLimiter(new PolicyChoice(first, maker, settings))
}

/**
 * What a limiter on a server becomes when `update` first changes a window: all keys have the default, and that counts in
 * several windows.
 * @param first the limiter as it was
 * @param keys reads the keys of its callers
 */
export function withoutPolicies(
  first: AsyncMember,
  rules: Rules,
  keys: TextKeys,
  maxKeys: number,
): AsyncConfiguredLimiter {
  const settings = checkStore({ config: memoryConfig(), maxWindows: MOST_WINDOWS }, maxKeys)
  const maker = { refusalOf: () => undefined, make: () => first } // never asked: the store is empty
  const choice = new PolicyChoice({ limiter: first, shape: policyShapeOf(rules) }, maker, settings)
  return new AsyncConfiguredLimiter(choice, undefined, keys)
}
