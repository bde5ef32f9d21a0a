import type { RemoteRule } from './remote-rule.js'
import { RULE_BYTES, TIME_BYTES } from './strict-script.js'

/**
 * The first argument of a call of the script: the operation, and the rules, each with its own limit or that of the
 * call.
 * @param timeMs a test's time; 0: that of the server
 */
export function headOf(
  op: string,
  timeMs: number,
  rules: readonly RemoteRule[],
  limits: readonly (number | undefined)[] = [],
): string {
  const records = rules.map((rule, i) => textOf(recordOf(rule, limits[i] ?? rule.rule.limit)))
  return op + records.join('') + (timeMs === 0 ? '' : textOf(timeRecord(timeMs)))
}

function recordOf({ parts, flags, shape, windowMs }: RemoteRule, limit: number): Buffer {
  const record = Buffer.alloc(RULE_BYTES)
  record.writeUInt8(flags, 0)
  record.writeUInt16BE(shape, 1)
  record.writeUInt32BE(limit, 3)
  record.writeUIntBE(parts, 7, 6)
  record.writeUIntBE(windowMs, 13, 6)
  return record
}

function timeRecord(timeMs: number): Buffer {
  const record = Buffer.alloc(TIME_BYTES)
  record.writeUIntBE(timeMs, 0, TIME_BYTES)
  return record
}

/** Bytes as characters below 128: the upper seven bits of all bytes, then the lowest bits. */
function textOf(bytes: Buffer): string {
  const codes = [...bytes]
  return String.fromCharCode(...codes.map((byte) => byte >> 1), ...codes.map((byte) => byte & 1))
}
