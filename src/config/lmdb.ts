export function lmdbConfig(): never {
  throw new Error('in progress')
}
