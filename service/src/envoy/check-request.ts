// What a request has to be, with the place of what is wrong.
import { ServiceError } from '../http/problem.js'
import { mostOf } from './config/limits.js'
import { type Descriptor, MOST_UINT32, type RateLimitRequest, UNIT_MS } from './contract.js'

const MOST_ENTRIES = 256
/** Characters of all entries of a descriptor. */
const LONGEST = 65_536
const LONGEST_DOMAIN = 1_024
/** Units that an override may have: a second to a year. */
const UNITS_OF_OVERRIDES = 6

export function invalid(field: string, expected: string): ServiceError {
  return new ServiceError(400, 'ERR_MILLRACE_INVALID_DESCRIPTOR', `${field}: expected ${expected}`, {
    field,
    expected,
  })
}

/** @throws ServiceError 400 that names the field */
export function checkRequest({ domain, descriptors }: RateLimitRequest, most: number): void {
  if (domain === '') throw invalid('domain', 'a text that is not empty')
  if (domain.length > LONGEST_DOMAIN) throw invalid('domain', `at most ${LONGEST_DOMAIN} characters`)
  if (descriptors.length === 0) throw invalid('descriptors', 'at least one')
  if (descriptors.length > most) throw invalid('descriptors', `at most ${most}`)
  for (let i = 0; i < descriptors.length; i++) checkDescriptor(descriptors[i]!, i)
}

function checkDescriptor({ entries, limit, hitsAddend }: Descriptor, index: number): void {
  const fail = (field: string, expected: string) => invalid(`descriptors[${index}].${field}`, expected)
  if (entries.length === 0) throw fail('entries', 'at least one')
  if (entries.length > MOST_ENTRIES) throw fail('entries', `at most ${MOST_ENTRIES}`)
  let length = 0
  for (let i = 0; i < entries.length; i++) {
    const { key, value } = entries[i]!
    if (key === '') throw fail(`entries[${i}].key`, 'a text that is not empty')
    length += key.length + value.length
  }
  if (length > LONGEST) throw fail('entries', `at most ${LONGEST} characters of keys and values`)
  if (hitsAddend !== undefined && !(hitsAddend <= MOST_UINT32))
    throw fail('hits_addend', `at most ${MOST_UINT32}`)
  if (limit === undefined) return
  if (limit.unit < 1 || limit.unit > UNITS_OF_OVERRIDES || UNIT_MS[limit.unit] === undefined)
    throw fail('limit.unit', 'a unit: 1 (second) to 6 (year)')
  if (limit.requestsPerUnit > mostOf()) throw fail('limit.requests_per_unit', `at most ${mostOf()}`)
}
