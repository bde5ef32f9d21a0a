// Checks of the options that are structured data.
import { wrongOption } from './option.js'

export const SCOPES = ['decide', 'read', 'change'] as const
export type Scope = (typeof SCOPES)[number]

/** A token of callers, and what it lets them do. */
export interface TokenOptions {
  readonly token: string
  readonly scopes: readonly Scope[]
  /** Names the token in logs. */
  readonly name?: string
}

const LEAST_TOKEN = 16
const LEAST_KEY = 32

type Fields = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export function checkLimiters(value: unknown, name: string): Readonly<Record<string, object>> {
  const all = isObject(value) ? value : wrongOption(name, 'limiters by name', value)
  for (const [limiter, options] of Object.entries(all)) {
    if (!/^[\w.-]{1,64}$/.test(limiter))
      wrongOption(name, 'names of letters, digits, dots, dashes and underscores', limiter)
    if (!isObject(options)) wrongOption(`${name}.${limiter}`, 'the options of a limiter', options)
  }
  return all as Readonly<Record<string, object>>
}

/** The value of a token is in no message. */
export function checkTokens(value: unknown, name: string): readonly TokenOptions[] {
  const all = Array.isArray(value) ? value : wrongOption(name, 'a list of tokens', {})
  for (const [i, each] of all.entries()) {
    const { token, scopes, name: own, ...others } = (isObject(each) ? each : {}) as Partial<TokenOptions>
    const place = `${name}[${i}]`
    if (typeof token !== 'string' || token.length < LEAST_TOKEN || /[^\x21-\x7e]/.test(token))
      wrongOption(`${place}.token`, `${LEAST_TOKEN} or more visible ASCII characters`, {})
    if (!Array.isArray(scopes) || scopes.length === 0 || !scopes.every((scope) => SCOPES.includes(scope)))
      wrongOption(`${place}.scopes`, `a list of ${SCOPES.join(', ')}`, scopes)
    if (own !== undefined && typeof own !== 'string') wrongOption(`${place}.name`, 'a text', own)
    for (const other of Object.keys(others)) wrongOption(`${place}.${other}`, 'no such field', {})
  }
  return all as TokenOptions[]
}

export function checkSigningKeys(value: unknown, name: string): readonly string[] {
  const all = Array.isArray(value) ? value : [value]
  if (!all.every((key) => typeof key === 'string' && key.length >= LEAST_KEY))
    wrongOption(name, `keys of ${LEAST_KEY} or more characters`, {})
  return all
}
