// The limiters that the options name.
import type { Duration } from 'millrace'
import { MillraceError } from 'millrace'
import { OptionError } from '../options/option.js'
import type { Settings } from '../options/table.js'

/** The options of a limiter: those of one rule, or `rules`. */
export type Rules = Readonly<Record<string, unknown>>

export const DEFAULT = 'default'

/** The rules of each limiter by name, the default one first. @throws OptionError */
export function rulesOf({ limit, limiters, envoyConfig }: Settings): ReadonlyMap<string, Rules> {
  const named = Object.entries(limiters) as [string, Rules][]
  if (limit.length === 0) {
    if (named.length === 0 && envoyConfig.length === 0)
      throw new OptionError(
        'limit: expected a limit and its window, such as --limit 100/1m, limiters, or envoyConfig, got none',
      )
    return new Map(named.sort(([a], [b]) => Number(b === DEFAULT) - Number(a === DEFAULT)))
  }
  if (DEFAULT in limiters) throw new OptionError(`limit: expected none beside limiters.${DEFAULT}`)
  const rules = limit.map(ruleOf)
  const own =
    rules.length === 1 ? rules[0]! : { rules: rules.map((rule, i) => ({ name: limit[i], ...rule })) }
  return new Map([[DEFAULT, own], ...named])
}

function ruleOf(text: string): { limit: number; window: Duration } {
  const [, limit, window] = /^(\d+)\/(\d.*)$/.exec(text) ?? []
  if (limit === undefined || /^[\d.]+$/.test(window!))
    throw new OptionError(
      `limit: expected a limit and its window, such as 100/1m, got ${JSON.stringify(text)}`,
    )
  return { limit: Number(limit), window: window as Duration }
}

/** Makes a limiter; its errors name the option of the service. */
export function made<T>(name: string, isByLimit: boolean, make: () => T): T {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    const where = isByLimit && name === DEFAULT ? 'limit' : `limiters.${name}`
    if (/INVALID_(OPTION|RULE|DURATION|POLICY)/.test(error.code))
      throw new OptionError(`${where}: ${error.message}`, { cause: error })
    throw error
  }
}
