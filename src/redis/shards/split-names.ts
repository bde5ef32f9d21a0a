import { KeyNames } from '../../remote/key-names.js'

const PART = /^(\d+):(.*)$/s
/** Stands before a key that looks like a part, or that begins with this. */
const WHOLE = '='
const AMBIGUOUS = /^(?:=|\d+:)/

/** A key, or one part of it, as a store of split keys hands it to the store below. */
export function partKey(key: string, part: number | undefined): string {
  if (part !== undefined) return `${part}:${key}`
  return AMBIGUOUS.test(key) ? WHOLE + key : key
}

/** The key of which the store below has this part. */
export function wholeKey(key: string): string {
  return key.startsWith(WHOLE) ? key.slice(WHOLE.length) : (PART.exec(key)?.[2] ?? key)
}

/**
 * The names of keys that may be split: part 3 of a key has `%s3:` before the key in braces, and `%s` is in no other
 * name. So the parts are in different slots of a Cluster, and have different shards. A key that is not split has the
 * name that it has without splitting.
 */
export class SplitNames extends KeyNames {
  override tagOf(key: string): string {
    if (key.startsWith(WHOLE)) return super.tagOf(key.slice(WHOLE.length))
    const [, part, own] = PART.exec(key) ?? []
    return part === undefined ? super.tagOf(key) : `%s${part}:${super.tagOf(own!)}`
  }
}
