import { BUCKETS, COUNT, LAP, refundsOf } from '#millrace/memory/layout.js'
import type { Arena } from '#millrace/memory/records.js'
import type { AlgorithmJudges } from './algorithm-judges.js'
import { type Known, MemoryJudge } from './memory-judge.js'
import type { Scenario } from './scenario.js'
import { WindowJudge } from './window-judge.js'

/** Judges by the format of a bucket: a lap, a mark of refunds, and a count. */
export function slidingWindowJudges(scenario: Scenario, arena: Arena, known: Known): AlgorithmJudges {
  const { timeline, units } = known
  const window = new WindowJudge(scenario, timeline, units, (what, how) => known.fail(what, how))
  const memory = new MemoryJudge(scenario, arena, known)
  const { ring } = arena.shape
  return {
    tickOf: (word) => word,
    chargeIn(field, before, after, newest) {
      if (field < BUCKETS || field >= BUCKETS + ring) return undefined
      const place = timeline.placeOfBucket(field - BUCKETS, after, newest)
      // The sweep clears buckets that are a lap old or more.
      if (place < 0 || (newest >>> 0) - timeline.shiftedTickOf(place) >= ring) return undefined
      const sameLap = (before & LAP) === (after & LAP)
      const more = (after & COUNT) - (sameLap ? before & COUNT : 0)
      return { place, more, isMarked: refundsOf(before) !== refundsOf(after) }
    },
    admitted: (key, place, limit) => window.judge(key, place, limit),
    converts: (key, record, tick, ms) => window.converts(key, record, tick, ms),
    losesCell: (key, records, ms) => window.losesCell(key, records, ms),
    usedAtMost: (key, record, tick) => window.inBuckets(key, record, tick),
    becomesLive: (way) => memory.checkLive(way),
    judgeAtRest: () => memory.judgeAtRest(),
  }
}
