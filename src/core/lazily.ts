const WITHOUT_DESCRIPTOR: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE'])

/** What has not been made, of what limiters may need after they have been created. */
const needed = new Set<() => object>()

/**
 * Returns a function that makes something at its first call, or loads a module: what most programs never use costs them
 * nothing. A module is loaded at once and not by a promise, so `make` uses `require`:
 *
 * ```ts
 * const require = createRequire(import.meta.url)
 * const poolLimiter = lazily(() => require('./pool-limiter.js') as typeof import('./pool-limiter.js'))
 * ...
 * new (poolLimiter().PoolLimiter)(memory)
 * ```
 *
 * The build reads these lines: keep their form, with both paths the same.
 *
 * A limiter in use reads no file: a process may have no file descriptor left then, or another release of the package in
 * its folder. So the first limiter of a thread loads what any may need later, by `loadParts`, and `require('millrace')`
 * stays as quick as it is. A descriptor kept in reserve would cost less, but another thread may take it.
 * @param when `'creation'`: only the creation of some limiters needs it
 */
export function lazily<Made extends object>(make: () => Made, when: 'use' | 'creation' = 'use'): () => Made {
  let made: Made | undefined
  const get = () => {
    if (made === undefined) {
      made = make()
      needed.delete(get)
    }
    return made
  }
  if (when === 'use') needed.add(get)
  return get
}

/** Makes what limiters may need after they have been created. */
export function loadParts(): void {
  try {
    for (const get of needed) get() // also what modules add that are loaded by this
  } catch (error) {
    // A limiter that is created without a descriptor can decide; it needs the rest later, if ever.
    if (!WITHOUT_DESCRIPTOR.has((error as NodeJS.ErrnoException).code)) throw error
  }
}
