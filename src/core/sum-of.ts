/** Adds the numbers of two objects, also in objects within. Everything else is that of the first which has it. */
export function sumOf<T extends object>(one: T, other: object): T {
  const total = { ...other, ...one } as Record<string, unknown>
  for (const [name, more] of Object.entries(other)) {
    const value = one[name as keyof T] as unknown
    if (typeof value === 'number' && typeof more === 'number') total[name] = value + more
    else if (isRecord(value) && isRecord(more)) total[name] = sumOf(value, more)
  }
  return total as T
}

const isRecord = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
