import type { Arena } from '#millrace/memory/records.js'
import type { AlgorithmJudges } from './algorithm-judges.js'
import { type Known, MemoryJudge } from './memory-judge.js'
import type { Scenario } from './scenario.js'
import { ADMITTED } from './units.js'

/**
 * Judges logs of units. A granule is a millisecond of theirs. Their scenarios have only decisions: the word of an
 * entry does not say whether a refund by key or its own decision has taken it out.
 */
export function logJudges(scenario: Scenario, arena: Arena, known: Known): AlgorithmJudges {
  const { timeline, units } = known
  const memory = new MemoryJudge(scenario, arena, known)
  const wide = timeline.bucketsOf(0)
  const endingIn = (key: number, tick: number) => units.charged([ADMITTED], key, 0, tick, wide)

  return {
    tickOf: (word) => word,
    chargeIn: () => undefined,
    admitted: (key, place, limit) => {
      const tick = timeline.tickOf(place)
      for (let last = tick; last < tick + wide; last++) {
        const sum = endingIn(key, last)
        if (sum > limit)
          known.fail('over', `key ${key}: ${sum} in ${wide} ticks up to ${last}, the limit is ${limit}`)
      }
    },
    converts: () => {},
    losesCell: () => {},
    usedAtMost: (key, _record, tick) => endingIn(key, tick),
    becomesLive: (way) => memory.checkLive(way),
    judgeAtRest: () => memory.judgeStates(),
  }
}
