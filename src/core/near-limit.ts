import { invalid } from './errors.js'

/** The default of the option `nearLimit`. */
export const NEAR_LIMIT = 0.8

/** The field of a limiter that has its option `nearLimit`, for what counts its decisions. */
export const NEAR_SHARE = Symbol('millrace near share')

/** The option `nearLimit` of a limiter. */
export const nearShareOf = (limiter: object): number =>
  (limiter as { readonly [NEAR_SHARE]?: number | undefined })[NEAR_SHARE] ?? NEAR_LIMIT

/** The fewest used units, a whole number, that are this share of a limit. */
export function leastNear(limit: number, share: number): number {
  const least = Math.ceil(limit * share) // the product may be a little off: 100 * 0.07 is above 7
  return (least - 1) / limit >= share ? least - 1 : least
}

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function checkNearLimit(share: unknown): number | undefined {
  const isShare = typeof share === 'number' && share > 0 && share <= 1
  if (share !== undefined && !isShare) throw invalid('nearLimit', share, 'a number above 0, at most 1')
  return share
}
