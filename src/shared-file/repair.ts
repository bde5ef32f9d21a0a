import type { Arena } from '../memory/arena.js'
import { ADM, CLAIMED, EPOCH, FREE, HEADER, LIVE, NAMES_AT, ONE_EPOCH, STATE } from '../memory/layout.js'
import { load, read, store } from '../memory/words.js'

/**
 * Frees the ways that a dead process had claimed and not yet named, and sets right the counts of them and of the keys. Only for who has
 * the file alone: elsewhere nobody can tell a way whose claimer is dead from one whose claimer is slow.
 *
 * What the way counts stays in it, for the key that takes it next. One that bears no name was never used: it becomes so
 * again, or it would keep a tick that no clock has ever shown. Each step is one word, so dying here leaves less to do.
 */
export function freeLostWays({ words, shape }: Arena): void {
  let keys = 0
  for (let way = 0; way < shape.ways; way++) {
    const at = shape.waysAt + way * shape.wayWords + ADM
    const v = load(words, at)
    if ((v & STATE) === LIVE) keys++
    if ((v & STATE) !== CLAIMED) continue
    const isUnused = read(words, NAMES_AT + way) === 0
    store(words, at, isUnused ? 0 : ((v + ONE_EPOCH) & EPOCH) | FREE | (v & ~(EPOCH | STATE)))
  }
  store(words, HEADER.CLAIMING, 0)
  store(words, HEADER.KEYS, keys)
}
