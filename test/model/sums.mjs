// The sum of a window, and the note in AS_OF of the tick that it was made in.
import { sumOfNodes } from './range-sum.mjs'
import { count, epoch, lap, lapOf, load, MAX, N, S, slot, tickOf } from './words.mjs'

/** The window's units, as of tick e and the reading `now`. */
export const sumOf = function* (w, e, now) {
  if (S.sums) return Math.min(yield* sumOfNodes(w, e), MAX - 1)
  // Sums the buckets e-n..e that have their own lap. The smooth edge weights the oldest.
  let s = 0
  for (let u = e; u >= e - N && u >= 0; u--) {
    const b = yield load(w, slot(u))
    if (lap(b) !== lapOf(u)) continue
    s += S.smooth && u === e - N ? Math.ceil((count(b) * (S.sub - subOf(e, now))) / S.sub) : count(b)
  }
  return Math.min(s, MAX - 1)
}
const subOf = (e, now) => (tickOf(now) === e ? now % S.sub : 0)
/** The AS_OF note of a sum made by the admission word v in tick e. */
export const stamp = (v, e, now) => epoch(v) * 1000 + (S.smooth ? e * S.sub + subOf(e, now) : e)
