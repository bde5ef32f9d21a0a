/**
 * Returns a function that loads a module at its first call: what most programs never use costs them nothing.
 * The module is loaded at once and not by a promise, so `load` uses `require`:
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
export function lazily<Module>(load: () => Module): () => Module {
  let module: Module | undefined
  return () => {
    module ??= load()
    return module
  }
}
