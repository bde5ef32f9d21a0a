import { createHash } from 'node:crypto'

/** A script, and the name by which a server knows it. */
export interface Script {
  readonly source: string
  readonly sha: string
}

/**
 * The same script, which a server from Redis 7 on also runs while its memory is full. For what frees memory, or takes
 * no more.
 */
export const withoutMemory = (source: string): string => `#!lua flags=allow-oom\n${source}`

/** What an older server answers to it. */
export const OLD_SERVER = /^ERR Error compiling script/

export const scriptOf = (source: string): Script => ({
  source,
  sha: createHash('sha1').update(source).digest('hex'),
})
