const OPERATIONS = ['load', 'store', 'add', 'compareExchange'] as const

/**
 * Runs `act` and, in the middle of it, `between`, as another thread that comes in between would: before its first atomic
 * operation (point 0), after that one (1), before the second (2), and so on. Plain reads stand between the two. What
 * `between` throws ends `act` there, as if its thread had died.
 * @returns what `act` returned, and whether it had the last of these points
 */
export function interrupted<T>(
  points: readonly number[],
  act: () => T,
  between: () => void,
): { result: T; wasInterrupted: boolean } {
  const atomics = Atomics as unknown as Record<string, (...words: unknown[]) => unknown>
  const originals = OPERATIONS.map((name) => atomics[name]!)
  const restore = () => {
    for (const [i, name] of OPERATIONS.entries()) atomics[name] = originals[i]!
  }
  let at = 0
  const pass = () => {
    if (!points.includes(at++)) return
    restore()
    between()
    patch()
  }
  const patch = () => {
    for (const [i, name] of OPERATIONS.entries()) {
      atomics[name] = (...words) => {
        pass()
        const found = originals[i]!(...words)
        pass()
        return found
      }
    }
  }
  patch()
  try {
    return { result: act(), wasInterrupted: at > points.at(-1)! }
  } finally {
    restore()
  }
}

const DEAD = new Error('dead')

/** Runs `act` up to this point of it. Whether there was one. */
export function diesAt(point: number, act: () => void): boolean {
  try {
    interrupted([point], act, () => {
      throw DEAD
    })
    return false
  } catch (error) {
    if (error !== DEAD) throw error
    return true
  }
}
