const OPERATIONS = ['load', 'store', 'add', 'compareExchange'] as const

/**
 * Runs `act`, and in the middle of it `between`, as if another thread had come in between. Point 0 is before
 * the first atomic operation of `act`, point 1 after it, point 2 before the second operation, and so on;
 * plain reads happen between those two. An error thrown by `between` ends `act` there, as the death of its
 * thread would.
 * @returns the result of `act`, and whether `act` reached the last of these points
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

/** Runs `act` and kills its thread at this point. Returns false if `act` ended before. */
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
