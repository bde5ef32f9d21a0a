export const LIMIT = 1_000
export const WINDOW_MS = 1_000

/** An admission: it was made between two times. */
export interface Admission {
  readonly from: number
  readonly to: number
  readonly source: string
}

/** The most admissions that were certainly in one window. */
export function fullestWindow(admissions: readonly Admission[], windowMs: number): number {
  const sorted = [...admissions].sort((a, b) => a.to - b.to)
  const slowest = Math.max(0, ...sorted.map(({ from, to }) => to - from))
  let most = 0
  for (const [i, { to: end }] of sorted.entries()) {
    let count = 0
    for (let j = i; j >= 0 && sorted[j]!.to > end - windowMs - slowest; j--)
      if (sorted[j]!.from > end - windowMs) count++
    most = Math.max(most, count)
  }
  return most
}
