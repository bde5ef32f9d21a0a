// The content of a file of policies, checked whole: what is wrong is named with its line.
import { readFileSync } from 'node:fs'
import { type ErrorCode, MillraceError } from '../../../core/errors.js'
import { parsePolicy } from '../../policy.js'
import { checkPolicyKey } from '../../policy-keys.js'
import { formatOf } from './format-of.js'
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
  for (const { error } of faultsOf(parsed, text, path, known)) throw error
  return new Map(parsed.documents)
}

/** What a file of policies has: how many documents, and all that is wrong with them. */
export interface CheckedPolicies {
  readonly documents: number
  readonly faults: readonly PolicyFault[]
}

export interface PolicyFault {
  /** Undefined if the text is no JSON or YAML. */
  readonly key: string | undefined
  readonly error: MillraceError
}

/**
 * Checks each document of a file. A text that is no JSON or YAML is one fault.
 * @throws MillraceError `ERR_MILLRACE_CONFIG_STORE` if the file can't be read, and as `formatOf` does
 */
export function checkedPolicies(path: string): CheckedPolicies {
  const format = formatOf(path)
  const text = readText(path)
  let parsed: ParsedText
  try {
    parsed = parse(text, path, format)
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    return { documents: 0, faults: [{ key: undefined, error }] }
  }
  return { documents: parsed.documents.size, faults: [...faultsOf(parsed, text, path, new Map())] }
}

/** What is wrong with documents that are not in `known`, in their order. */
function* faultsOf(
  { documents, placeOf }: ParsedText,
  text: string,
  path: string,
  known: ReadonlyMap<string, unknown>,
): Generator<PolicyFault> {
  for (const [key, document] of documents) {
    if (known.has(key) && isSame(known.get(key), document)) continue
    try {
      checkPolicyKey(key)
      parsePolicy(document, key)
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error
      yield { key, error: faultAt(text, path, placeOf(key, namesIn(key, error)), error) }
    }
  }
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
