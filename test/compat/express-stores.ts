// The store of express-rate-limit and ours, of each kind. Sources: the types of express-rate-limit 8 and
// https://express-rate-limit.mintlify.app/reference/stores.
import { type Options, MemoryStore as OriginalStore, type Store } from 'express-rate-limit'
import { MemoryStore, MillraceStore } from 'millrace/compat/express-rate-limit'

export const WINDOW_MS = 60_000

/** A store with all methods that the one of express-rate-limit has. */
export type FullStore = Required<Omit<Store, 'prefix'>>

export interface Kind {
  readonly name: string
  readonly create: () => FullStore
  /** The limit that `init` gets, if it gets one. */
  readonly limit?: number
}

export const original: Kind = { name: 'the original', create: () => new OriginalStore() }
const fixed: Kind = {
  name: 'Millrace, fixed window',
  create: () => new MillraceStore({ algorithm: 'fixed-window' }),
}
/** The two that answer alike. */
export const likeOriginal = [original, fixed]
export const KINDS: Kind[] = [
  ...likeOriginal,
  { name: 'Millrace, without a limit', create: () => new MemoryStore() },
  { name: 'Millrace, limit 3', create: () => new MillraceStore(), limit: 3 },
  { name: 'Millrace, limit 3 in buckets', create: () => new MillraceStore({ maxLogLimit: 0 }), limit: 3 },
  { name: 'Millrace, limit 0', create: () => new MillraceStore(), limit: 0 },
]

/** What `init` gets. */
export const optionsOf = ({ limit }: Kind, windowMs = WINDOW_MS): Options => ({ windowMs, limit }) as Options

/** What `get` and `increment` answer, with the time until the reset in place of its date. */
export async function shown(answer: ReturnType<FullStore['get']>): Promise<[number, number] | undefined> {
  const info = await answer
  return info && [info.totalHits, info.resetTime!.getTime() - Date.now()]
}
