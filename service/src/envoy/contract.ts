// The messages of envoy.service.ratelimit.v3, and how they are read and written. `service/proto/ratelimit.proto` has the
// numbers of all fields. Fields that are not known are passed over.
import { BYTES, Reader, VARINT, Writer } from './protobuf.js'

export interface Entry {
  readonly key: string
  readonly value: string
}

/** A limit that the request brings. */
export interface Override {
  readonly requestsPerUnit: number
  readonly unit: number
}

export interface Descriptor {
  readonly entries: readonly Entry[]
  readonly limit?: Override | undefined
  /** Undefined: that of the request. */
  readonly hitsAddend?: number | undefined
}

export interface RateLimitRequest {
  readonly domain: string
  readonly descriptors: readonly Descriptor[]
  /** 0: 1. */
  readonly hitsAddend: number
}

export const CODES = ['UNKNOWN', 'OK', 'OVER_LIMIT'] as const
export const OK = 1
export const OVER_LIMIT = 2
export type Code = typeof OK | typeof OVER_LIMIT

/** By number. */
export const UNITS = ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR', 'WEEK'] as const

const SECOND_MS = 1_000
const DAY_MS = 86_400 * SECOND_MS
/** By number. A month has 30 days, and a year 365. */
export const UNIT_MS = [
  0,
  SECOND_MS,
  60 * SECOND_MS,
  3_600 * SECOND_MS,
  DAY_MS,
  30 * DAY_MS,
  365 * DAY_MS,
  7 * DAY_MS,
] as const

export interface CurrentLimit {
  readonly requestsPerUnit: number
  /** 0 for a window that is none of the units. */
  readonly unit: number
  readonly name: string
}

export interface DescriptorStatus {
  readonly code: Code
  readonly currentLimit?: CurrentLimit
  readonly limitRemaining: number
  readonly resetMs?: number
}

export interface Header {
  readonly key: string
  readonly value: string
}

export interface RateLimitResponse {
  readonly overallCode: Code
  readonly statuses: readonly DescriptorStatus[]
  readonly responseHeadersToAdd: readonly Header[]
}

export const MOST_UINT32 = 2 ** 32 - 1

const varint = (field: number): number => field * 8 + VARINT
const bytes = (field: number): number => field * 8 + BYTES

/** @throws WireError for bytes that are no such message */
export function readRequest(message: Uint8Array): RateLimitRequest {
  const reader = new Reader(message)
  const descriptors: Descriptor[] = []
  let domain = ''
  let hitsAddend = 0
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === bytes(1)) domain = reader.text()
    else if (tag === bytes(2)) descriptors.push(readDescriptor(reader.message()))
    else if (tag === varint(3)) hitsAddend = reader.varint() % (MOST_UINT32 + 1)
    else reader.skip(tag)
  }
  return { domain, descriptors, hitsAddend }
}

function readDescriptor(reader: Reader): Descriptor {
  const entries: Entry[] = []
  let limit: Override | undefined
  let hitsAddend: number | undefined
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === bytes(1)) entries.push(readEntry(reader.message()))
    else if (tag === bytes(2)) limit = readOverride(reader.message())
    else if (tag === bytes(3)) hitsAddend = readWrapped(reader.message())
    else reader.skip(tag)
  }
  return { entries, limit, hitsAddend }
}

function readEntry(reader: Reader): Entry {
  let key = ''
  let value = ''
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === bytes(1)) key = reader.text()
    else if (tag === bytes(2)) value = reader.text()
    else reader.skip(tag)
  }
  return { key, value }
}

function readOverride(reader: Reader): Override {
  let requestsPerUnit = 0
  let unit = 0
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === varint(1)) requestsPerUnit = reader.varint() % (MOST_UINT32 + 1)
    else if (tag === varint(2)) unit = reader.varint()
    else reader.skip(tag)
  }
  return { requestsPerUnit, unit }
}

/** A `google.protobuf.UInt64Value`. */
function readWrapped(reader: Reader): number {
  let value = 0
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === varint(1)) value = reader.varint()
    else reader.skip(tag)
  }
  return value
}

export function writeResponse({ overallCode, statuses, responseHeadersToAdd }: RateLimitResponse): Buffer {
  const writer = new Writer()
  writer.uint(1, overallCode)
  for (const status of statuses) writer.message(2, () => writeStatus(writer, status))
  for (const { key, value } of responseHeadersToAdd)
    writer.message(3, () => {
      writer.text(1, key)
      writer.text(2, value)
    })
  return writer.finish()
}

function writeStatus(
  writer: Writer,
  { code, currentLimit, limitRemaining, resetMs }: DescriptorStatus,
): void {
  writer.uint(1, code)
  if (currentLimit !== undefined)
    writer.message(2, () => {
      writer.uint(1, currentLimit.requestsPerUnit)
      writer.uint(2, currentLimit.unit)
      writer.text(3, currentLimit.name)
    })
  writer.uint(3, limitRemaining)
  if (resetMs !== undefined)
    writer.message(4, () => {
      const ms = Math.ceil(resetMs)
      writer.uint(1, Math.floor(ms / 1_000))
      writer.uint(2, (ms % 1_000) * 1_000_000)
    })
}
