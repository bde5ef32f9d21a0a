import { invalid } from './errors.js'

/** The default of the option `nearLimit`. */
export const NEAR_LIMIT = 0.8

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function checkNearLimit(share: unknown): number | undefined {
  const isShare = typeof share === 'number' && share > 0 && share <= 1
  if (share !== undefined && !isShare) throw invalid('nearLimit', share, 'a number above 0, at most 1')
  return share
}
