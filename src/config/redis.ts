export function redisConfig(): never {
  throw new Error('in progress')
}
