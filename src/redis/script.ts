import { createHash } from 'node:crypto'

/** A script, and the name by which a server knows it. */
export interface Script {
  readonly source: string
  readonly sha: string
}

export const scriptOf = (source: string): Script => ({
  source,
  sha: createHash('sha1').update(source).digest('hex'),
})
