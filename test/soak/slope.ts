/** The slope of a line fitted to points, with its standard error. */
export interface Slope {
  readonly perHour: number
  readonly standardError: number
}

const MS_AN_HOUR = 3_600_000

/** Fits by least squares; needs at least three points. */
export function slopeOf(points: readonly { atMs: number; value: number }[]): Slope {
  const count = points.length
  const meanAt = points.reduce((sum, { atMs }) => sum + atMs, 0) / count
  const mean = points.reduce((sum, { value }) => sum + value, 0) / count
  const spread = points.reduce((sum, { atMs }) => sum + (atMs - meanAt) ** 2, 0)
  const slope = points.reduce((sum, { atMs, value }) => sum + (atMs - meanAt) * (value - mean), 0) / spread
  const left = points.reduce((sum, { atMs, value }) => sum + (value - mean - slope * (atMs - meanAt)) ** 2, 0)
  const error = Math.sqrt(left / (count - 2) / spread)
  return { perHour: slope * MS_AN_HOUR, standardError: error * MS_AN_HOUR }
}

/** Whether the slope is above the bound by more than twice its standard error. */
export function isAbove({ perHour, standardError }: Slope, bound: number): boolean {
  return perHour - 2 * standardError > bound
}
