/** By what `stats()` has returned: the memory whose counts it has, so that they are not added up. */
const memories = new WeakMap<object, string>()

/** Notes the memory, and returns the stats. */
export function ofMemory<S extends object>(stats: S, memory: string): S {
  memories.set(stats, memory)
  return stats
}

/** Undefined: there is none, or it is not known. */
export const memoryOf = (stats: object): string | undefined => memories.get(stats)
