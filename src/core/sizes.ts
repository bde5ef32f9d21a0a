/**
 * A quantity, such as of bytes or tokens: a whole number above 0, or a string of a number and a unit: `B`,
 * `KB`, `MB`, `GB`, `TB` (powers of 1,000), `KiB`, `MiB`, `GiB`, `TiB` (powers of 1,024). Decimals are
 * allowed, spaces are not: `'1.5GB'` is 1,500,000,000. Digits alone are accepted, too, as in a variable of
 * the environment; the compiler then needs `as Size`.
 */
export type Size =
  | number
  | `${number}${'B' | 'KB' | 'kB' | 'MB' | 'GB' | 'TB' | 'KiB' | 'MiB' | 'GiB' | 'TiB'}`

/** Those of the SI and of IEC 80000-13, so `KB` is 1,000. `kB` is how the SI writes it. */
const UNITS = {
  B: 1,
  KB: 1e3,
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
}
const PATTERN = /^(\d{1,16})(?:\.(\d{1,16}))?(B|[Kk]B|[MGT]B|[KMGT]iB)?$/

/** Converts a size to a number. Returns undefined for one that is not a whole number from 1 to 2^53 - 1. */
export function parseSize(value: unknown): number | undefined {
  const size = typeof value === 'string' ? sizeOf(value) : value
  return Number.isSafeInteger(size) && (size as number) > 0 ? (size as number) : undefined
}

/** The number of a size as a string, by exact decimals: doubles would make 1.1 KB 1100.0000000000002. */
function sizeOf(text: string): number | undefined {
  const [, whole, fraction = '', unit = 'B'] = PATTERN.exec(text) ?? []
  if (whole === undefined) return undefined
  const scaled = BigInt(whole + fraction) * BigInt(UNITS[unit as keyof typeof UNITS])
  const divisor = 10n ** BigInt(fraction.length)
  return scaled % divisor === 0n ? Number(scaled / divisor) : undefined
}

/** Formats a whole number as a size, in the largest power of 1,000 that divides it: 5,000 is `5KB`. */
export function formatSize(size: number): string {
  for (const unit of ['TB', 'GB', 'MB', 'KB'] as const) {
    if (size % UNITS[unit] === 0) return `${size / UNITS[unit]}${unit}`
  }
  return `${size}B`
}
