/** What the explorer's worker is asked: to look for anything wrong with one file's code in place of the shipped one's. */
export interface Request {
  /** Below `esm`. */
  readonly file: string
  readonly original: string
  readonly code: string
  /** The scenarios, those first that notice most. */
  readonly scenarios: readonly string[]
  readonly walks: number
  readonly seed: number
}

/** Sent before each part of the work, and at its end. */
export type Answer =
  | { readonly kind: 'at'; readonly part: string }
  | { readonly kind: 'done'; readonly noticed?: { readonly part: string; readonly what: string } }

export const SMOKE = 'smoke'
export const WALK = 'random schedules'
