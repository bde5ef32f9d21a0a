import type { Duration } from 'millrace'
import type { Policy, PolicyRule } from 'millrace/config/memory'
import { formatDuration, parseDuration, RULE_OPTIONS } from 'millrace/internal'
import { printable } from '../terminal.js'

/** Options whose values say what they are. */
const BARE = ['algorithm']
/** Options in the rate itself. */
const RATE = ['limit', 'window', 'period', 'name']

export function rulesIn(policy: Policy): readonly PolicyRule[] {
  return 'rules' in policy ? policy.rules : [policy]
}

/** A line for each rule: `100/1m`, `burst: 10/1s, token-bucket, burst 20`, `5/month, fixed-window, align calendar`. */
export function ruleTexts(policy: Policy): string[] {
  return rulesIn(policy).map(ruleText)
}

function ruleText(rule: PolicyRule): string {
  const rate = `${rule.limit}/${rule.period ?? durationText(rule.window!)}`
  const named = rule.name === undefined || rule.name === rate ? rate : `${printable(rule.name)}: ${rate}`
  return [named, ...optionTexts(rule)].join(', ')
}

function optionTexts(rule: PolicyRule): string[] {
  const options = rule as unknown as Record<string, unknown>
  return RULE_OPTIONS.filter(
    (name) => !RATE.includes(name) && options[name] !== undefined && options[name] !== false,
  ).map((name) => {
    const value = options[name]
    if (value === true) return name
    const text = name === 'granularity' ? durationText(value as Duration) : String(value)
    return BARE.includes(name) ? text : `${name} ${text}`
  })
}

const durationText = (value: Duration): string => formatDuration(parseDuration(value, 'window'))
