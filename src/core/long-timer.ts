/** The longest delay of a timer. A longer one would fire at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1

/**
 * Calls `done` after any number of milliseconds, never for `Infinity`.
 * @returns a function that stops the timer
 */
export function afterMs(ms: number, done: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const wait = (leftMs: number): void => {
    const partMs = Math.min(leftMs, LONGEST_TIMER_MS)
    timer = setTimeout(() => (leftMs > partMs ? wait(leftMs - partMs) : done()), partMs)
  }
  if (ms !== Number.POSITIVE_INFINITY) wait(ms)
  return () => clearTimeout(timer)
}
