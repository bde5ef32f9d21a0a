// The kinds of options: how each reads the text of a flag or a variable, and the value of a file.
import { parseDuration } from 'millrace/internal'
import { parse as parseYaml } from 'yaml'

/** An error in the options: one line that names the option. */
export class OptionError extends Error {}

/** An option of the service, as every source of it knows it. */
export interface Option<T = unknown> {
  /** What a flag shows in place of the value. */
  readonly value: string
  readonly help: string
  readonly fallback: T
  /** It may be in a file or a variable, never in a flag, and nothing shows it. */
  readonly isSecret?: true
  /** A flag that takes no value. */
  readonly isSwitch?: true
  /** Reads a text. */
  fromText(text: string): unknown
  /** @throws OptionError for a value that is none of the option */
  check(value: unknown, name: string): T
}

const fail = (name: string, expected: string, value: unknown): never => {
  const shown = typeof value === 'object' ? 'another value' : JSON.stringify(value)
  throw new OptionError(`${name}: expected ${expected}, got ${shown}`)
}

type Own<T> = Pick<Option<T>, 'help'> & { readonly fallback: T; readonly value?: string }

const asIs = (text: string): unknown => text

export const text = <T extends string | undefined>(own: Own<T>): Option<T> => ({
  value: 'text',
  ...own,
  fromText: asIs,
  check: (value, name) =>
    typeof value === 'string' && value !== ''
      ? (value as T)
      : fail(name, 'a text that is not empty, between quotes if it is of digits', {}), // it may be a password
})

export const choice = <T extends string>(choices: readonly T[], own: Own<T>): Option<T> => ({
  value: choices.join('|'),
  ...own,
  fromText: asIs,
  check: (value, name) =>
    choices.includes(value as T) ? (value as T) : fail(name, `one of ${choices.join(', ')}`, value),
})

export const integer = <T extends number | undefined>(
  [least, most]: readonly [number, number],
  own: Own<T>,
): Option<T> => ({
  value: 'number',
  ...own,
  fromText: (text) => (/^\d+$/.test(text) ? Number(text) : text),
  check: (value, name) =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= most
      ? (value as T)
      : fail(name, `a whole number from ${least} to ${most}`, value),
})

/** A duration with its unit. It is kept in milliseconds. */
export const duration = (own: Own<number>): Option<number> => ({
  value: 'duration',
  ...own,
  fromText: asIs,
  check(value, name) {
    if (typeof value === 'number' && value >= 0) return value
    if (value === '0s') return 0
    try {
      if (typeof value === 'string' && !/^[\d.]+$/.test(value)) return parseDuration(value as '1s', name)
    } catch {}
    return fail(name, 'a duration with its unit, such as 250ms, 10s or 5m', value)
  },
})

export const toggle = (own: Own<boolean>): Option<boolean> => ({
  value: '',
  ...own,
  isSwitch: true,
  fromText: (text) => (text === 'true' ? true : text === 'false' ? false : text),
  check: (value, name) => (typeof value === 'boolean' ? value : fail(name, 'true or false', value)),
})

/** Texts: a flag is repeated, a variable has commas. */
export const texts = (own: Own<readonly string[]>): Option<readonly string[]> => ({
  value: 'text',
  ...own,
  fromText: (text) => text.split(',').map((part) => part.trim()),
  check(value, name) {
    const all = Array.isArray(value) ? value : [value]
    return all.every((each) => typeof each === 'string' && each !== '') ? all : fail(name, 'texts', value)
  },
})

/** Structured data: YAML or JSON in a flag or a variable. */
export const data = <T>(own: Own<T>, check: (value: unknown, name: string) => T): Option<T> => ({
  value: 'yaml',
  ...own,
  fromText(text) {
    try {
      return parseYaml(text)
    } catch {
      return text // which is none of the data: its check says so
    }
  },
  check,
})

export const secret = <T>(option: Option<T>): Option<T> => ({ ...option, isSecret: true })

export { fail as wrongOption }
