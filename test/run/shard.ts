import type { Part } from './parts.js'

/** A share of all tests: the first, second, ... of `count` shares. */
export interface Shard {
  /** From 1 on. */
  readonly number: number
  readonly count: number
}

/**
 * Reads a shard such as `1/2`.
 * @throws Error if there is no such shard
 */
export function readShard(text: string): Shard {
  const [, number, count] = /^(\d+)\/(\d+)$/.exec(text) ?? []
  const shard = { number: Number(number), count: Number(count) }
  if (!(shard.number >= 1 && shard.number <= shard.count))
    throw new Error(`--shard: expected a shard such as 1/2, got ${text}`)
  return shard
}

/** Every `count`th entry of a list: all shards together have each entry once. */
export function ofShard<T>(list: readonly T[], { number, count }: Shard): T[] {
  return list.filter((_, i) => i % count === number - 1)
}

/**
 * Parts that run test files are in each shard, with a share of the files. Each other part is in one shard: the
 * longest first, in the shard with the smallest sum of budgets.
 */
export function partsOfShard(parts: readonly Part[], { number, count }: Shard): Part[] {
  if (count === 1) return [...parts]
  const sums = new Array<number>(count).fill(0)
  const shards = new Map<Part, number>()
  for (const part of parts.toSorted((a, b) => b.budgetSeconds - a.budgetSeconds)) {
    if (isOfFiles(part)) continue
    const least = sums.indexOf(Math.min(...sums))
    sums[least]! += part.budgetSeconds
    shards.set(part, least + 1)
  }
  return parts
    .filter((part) => isOfFiles(part) || shards.get(part) === number)
    .map((part) =>
      isOfFiles(part) ? { ...part, args: [...part.args, '--shard', `${number}/${count}`] } : part,
    )
}

function isOfFiles({ args }: Part): boolean {
  return args[0]!.endsWith('test/run.js')
}
