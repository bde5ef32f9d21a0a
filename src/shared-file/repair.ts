import { ADM, CLAIMED, EPOCH, FREE, HEADER, LIVE, NAMES_AT, ONE_EPOCH, STATE } from '../memory/layout.js'
import type { Arena } from '../memory/records.js'
import { load, read, store } from '../memory/words.js'

/**
 * Frees the ways that dead processes left CLAIMED, and corrects the counts of such ways and of keys. Only a
 * process that has the file alone may do this: no other can tell a dead process from a slow one.
 *
 * A freed way keeps its counts, for the key that takes it next. A way without a name was never used, and
 * becomes unused again. Otherwise it would keep a tick that no clock has reached. Each step writes one word,
 * so a process that dies here leaves less to do.
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
