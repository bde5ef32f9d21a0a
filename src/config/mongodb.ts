export function mongoConfig(): never {
  throw new Error('in progress')
}
