// The content of a file of policies, checked whole: what is wrong is named with its line.
import { readFileSync } from 'node:fs'
import { type ErrorCode, MillraceError } from '../../../core/errors.js'
import { parsePolicy } from '../../policy.js'
import { checkPolicyKey } from '../../policy-keys.js'
import { lineAndColumn, type ParsedText, TextFault, type TextFormat } from './text-format.js'

/** @throws MillraceError `ERR_MILLRACE_CONFIG_STORE` */
export function readText(path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new MillraceError('ERR_MILLRACE_CONFIG_STORE', path, code, 'a readable file in UTF-8', { cause })
  }
}

/**
 * The documents in a text. Those that are in `known` already are not checked again.
 * @throws MillraceError `ERR_MILLRACE_CONFIG_STORE`, `ERR_MILLRACE_INVALID_POLICY`, `ERR_MILLRACE_INVALID_KEY`
 */
export function documentsIn(
  text: string,
  path: string,
  format: TextFormat,
  known: ReadonlyMap<string, unknown>,
): Map<string, unknown> {
  const parsed = parse(text, path, format)
  for (const [key, document] of parsed.documents) {
    if (known.has(key) && isSame(known.get(key), document)) continue
    try {
      checkPolicyKey(key)
      parsePolicy(document, key)
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error
      throw faultAt(text, path, parsed.placeOf(key, namesIn(key, error)), error)
    }
  }
  return new Map(parsed.documents)
}

function parse(text: string, path: string, format: TextFormat): ParsedText {
  try {
    return format.parse(text)
  } catch (error) {
    if (!(error instanceof TextFault)) throw error
    const { at, found: value, expected } = error
    const fault = { code: 'ERR_MILLRACE_CONFIG_STORE', option: format.name, value, expected } as const
    throw faultAt(text, path, at, fault)
  }
}

/** The way to what an error is about: `['rules', '1', 'limit']`; for an unknown option, with its name. */
function namesIn(key: string, { option, value }: MillraceError): string[] {
  const names = option.startsWith(`${key}: `) ? option.slice(key.length + 2).match(/[^.[\]]+/g) : null
  const named = (names ?? []).filter((name) => name !== 'policy' && name !== 'document')
  return typeof value === 'string' ? [...named, value] : named
}

interface Fault {
  readonly code: ErrorCode
  readonly option: string
  readonly value: unknown
  readonly expected: string
}

function faultAt(text: string, path: string, at: number, { code, option, value, expected }: Fault) {
  const { line, column } = lineAndColumn(text, at)
  return new MillraceError(code, `${path}:${line}:${column}: ${option}`, value, expected)
}

/** Whether two documents are equal, as JSON. */
export function isSame(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b)
}

/** The keys whose documents differ. */
export function differing(a: ReadonlyMap<string, unknown>, b: ReadonlyMap<string, unknown>): string[] {
  const removed = [...a.keys()].filter((key) => !b.has(key))
  const others = [...b].filter(([key, document]) => !a.has(key) || !isSame(a.get(key), document))
  return [...removed, ...others.map(([key]) => key)]
}
