import { MillraceError } from '../core/errors.js'
import { count } from '../memory/counters.js'
import { HEADER } from '../memory/layout.js'
import type { Words } from '../memory/words.js'

const warned = new WeakSet<ArrayBufferLike>()

/**
 * Counts that a loop on this memory gave up, and warns once for each memory and thread. Throws every other error on.
 */
export function noteDamage(words: Words, error: unknown): void {
  if (!(error instanceof MillraceError) || error.code !== 'ERR_MILLRACE_DAMAGED') throw error
  count(words, HEADER.DAMAGED, 1)
  if (warned.has(words.buffer)) return
  warned.add(words.buffer)
  const message =
    'the shared memory of a limiter is damaged: a call gave up, and was refused. ' +
    'Create a new limiter; of a shared file, another file. stats().damaged counts such calls'
  process.emitWarning(message, { type: 'MillraceWarning', code: 'ERR_MILLRACE_DAMAGED' })
}

/** Acts on shared memory. Returns `refused` if a loop gives up. */
export function unlessDamaged<T>(words: Words, refused: T, act: () => T): T {
  try {
    return act()
  } catch (error) {
    noteDamage(words, error)
    return refused
  }
}
