// The messages of the contract as JSON, by the mapping of proto3.

import { invalid } from './check-request.js'
import {
  CODES,
  type Descriptor,
  type DescriptorStatus,
  type Entry,
  MOST_UINT32,
  type Override,
  type RateLimitRequest,
  type RateLimitResponse,
  UNITS,
} from './contract.js'

type Fields = Readonly<Record<string, unknown>>

/** The fields of an object by their names as in the contract, in camel case. Null is as if it were not there. */
function fieldsOf(value: unknown, path: string, known: readonly string[]): Fields {
  const at = path === '' ? 'body' : path
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(at, 'an object')
  const fields: Record<string, unknown> = {}
  for (const [given, own] of Object.entries(value)) {
    const name = given.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
    const field = path === '' ? given : `${path}.${given}`
    if (!known.includes(name)) throw invalid(field, `no such field, but ${known.join(', ')}`)
    if (name in fields) throw invalid(field, 'the field once')
    if (own !== null) fields[name] = own
  }
  return fields
}

function textOf(value: unknown, field: string): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : fail(field, 'a text')
}

const fail = (field: string, expected: string): never => {
  throw invalid(field, expected)
}

/** JSON has numbers of 64 bits as texts. */
function uintOf(value: unknown, field: string): number {
  if (value === undefined) return 0
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  const isOne = Number.isInteger(number) && (number as number) >= 0 && (number as number) <= MOST_UINT32
  return isOne ? (number as number) : fail(field, `a whole number from 0 to ${MOST_UINT32}`)
}

function listOf<T>(value: unknown, field: string, read: (item: unknown, field: string) => T): T[] {
  if (value === undefined) return []
  const items: readonly unknown[] = Array.isArray(value) ? value : fail(field, 'a list')
  return items.map((item, i) => read(item, `${field}[${i}]`))
}

/** @throws ServiceError 400 that names the field */
export function requestOf(body: unknown): RateLimitRequest {
  const { domain, descriptors, hitsAddend } = fieldsOf(body, '', ['domain', 'descriptors', 'hitsAddend'])
  return {
    domain: textOf(domain, 'domain'),
    descriptors: listOf(descriptors, 'descriptors', descriptorOf),
    hitsAddend: uintOf(hitsAddend, 'hits_addend'),
  }
}

function descriptorOf(value: unknown, field: string): Descriptor {
  const { entries, limit, hitsAddend } = fieldsOf(value, field, ['entries', 'limit', 'hitsAddend'])
  return {
    entries: listOf(entries, `${field}.entries`, entryOf),
    limit: limit === undefined ? undefined : overrideOf(limit, `${field}.limit`),
    hitsAddend: hitsAddend === undefined ? undefined : uintOf(hitsAddend, `${field}.hits_addend`),
  }
}

function entryOf(value: unknown, field: string): Entry {
  const { key, value: own } = fieldsOf(value, field, ['key', 'value'])
  return { key: textOf(key, `${field}.key`), value: textOf(own, `${field}.value`) }
}

function overrideOf(value: unknown, field: string): Override {
  const { requestsPerUnit, unit } = fieldsOf(value, field, ['requestsPerUnit', 'unit'])
  const number = typeof unit === 'string' ? UNITS.indexOf(unit as 'DAY') : uintOf(unit, `${field}.unit`)
  return { requestsPerUnit: uintOf(requestsPerUnit, `${field}.requests_per_unit`), unit: Math.max(0, number) }
}

/** Fields of 0 and empty lists are left out. */
export function jsonOf({ overallCode, statuses, responseHeadersToAdd }: RateLimitResponse): object {
  return {
    overallCode: CODES[overallCode],
    statuses: statuses.map(statusJson),
    ...(responseHeadersToAdd.length > 0 && { responseHeadersToAdd }),
  }
}

function statusJson({ code, currentLimit, limitRemaining, resetMs }: DescriptorStatus): object {
  return {
    code: CODES[code],
    ...(currentLimit !== undefined && {
      currentLimit: {
        ...(currentLimit.requestsPerUnit > 0 && { requestsPerUnit: currentLimit.requestsPerUnit }),
        ...(currentLimit.unit > 0 && { unit: UNITS[currentLimit.unit] }),
        ...(currentLimit.name !== '' && { name: currentLimit.name }),
      },
    }),
    ...(limitRemaining > 0 && { limitRemaining }),
    ...(resetMs !== undefined && { durationUntilReset: `${Math.ceil(resetMs) / 1_000}s` }),
  }
}
