/** Arbitrary addresses for property tests, and their spellings. */
import fc from '../fast-check.js'

/** The 8 groups of an IPv6 address, with many zeros. */
export const groups = fc.array(
  fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }), fc.constantFrom(1, 0xff, 0xffff, 0x2001)),
  { minLength: 8, maxLength: 8 },
)

const octet = fc.nat(255)

export const octets = fc.tuple(octet, octet, octet, octet)

/** How to write an IPv6 address. */
interface Style {
  readonly isUpper: boolean
  readonly digits: readonly number[]
  readonly hasIPv4: boolean
  /** Of the runs of zeros, which part becomes `::`. */
  readonly gap: readonly [number, number]
  readonly zone: string
}

export const style: fc.Arbitrary<Style> = fc.record({
  isUpper: fc.boolean(),
  digits: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 8, maxLength: 8 }),
  hasIPv4: fc.boolean(),
  gap: fc.tuple(fc.nat(7), fc.nat(8)),
  zone: fc.constantFrom('', '%eth0', '%1', '%25en1'),
})

/** Writes an IPv6 address in this style, if it can be written so. */
export function spelled(address: readonly number[], { isUpper, digits, hasIPv4, gap, zone }: Style): string {
  const parts = address.map((group, i) => group.toString(16).padStart(digits[i]!, '0'))
  if (hasIPv4) parts.splice(6, 2, octetsOf(address[6]!, address[7]!).join('.'))
  let text = parts.join(':')
  const [first, length] = gap
  const after = first + length
  if (length > 0 && after <= (hasIPv4 ? 6 : 8) && address.slice(first, after).every((group) => group === 0)) {
    text = `${parts.slice(0, first).join(':')}::${parts.slice(after).join(':')}`
  }
  return `${isUpper ? text.toUpperCase() : text}${zone}`
}

export function octetsOf(high: number, low: number): number[] {
  return [high >> 8, high & 255, low >> 8, low & 255]
}
