export function shardedConfig(): never {
  throw new Error('in progress')
}
