export const keyOf = (key: number): string => `key ${key}`
