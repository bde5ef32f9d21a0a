import type { Decision, MadeDecision } from '../../core/decision.js'
import { Ticks } from '../../core/ticks.js'
import { shapeFor } from '../../memory/layout.js'

/**
 * When an admission took effect, in milliseconds of the limiter's clock: at the reading by which it was decided; but where
 * another thread had moved the key on to a later granule, at the start of that, for there it was charged.
 *
 * A log that is to judge a limiter needs this moment. One stamped a little later, when the answer is written, puts an
 * admission of long ago beside those of now, and finds windows over the limit that never were.
 */
export function effectStamp({ windowMs, granularityMs }: { windowMs: number; granularityMs: number }) {
  const buckets = Math.round(windowMs / granularityMs)
  const { modulus } = shapeFor(windowMs, buckets, 2)
  const ticks = new Ticks(windowMs, buckets, modulus)
  return (decision: Decision, readingMs: number): number => {
    const own = Math.floor(ticks.position(readingMs))
    const charged = (decision as MadeDecision).tick >>> 0
    const ahead = (charged - ticks.wrap(own) + modulus) % modulus
    return ahead === 0 ? readingMs : (own + ahead) * ticks.granuleMs
  }
}
