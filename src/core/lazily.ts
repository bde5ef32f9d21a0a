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
 */
export function lazily<Made extends object>(make: () => Made): () => Made {
  let made: Made | undefined
  return () => {
    made ??= make()
    return made
  }
}
