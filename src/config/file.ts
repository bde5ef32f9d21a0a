export function fileConfig(): never {
  throw new Error('in progress')
}
