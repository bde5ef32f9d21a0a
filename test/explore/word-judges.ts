import type { Arena } from '#millrace/memory/records.js'
import type { AlgorithmJudges } from './algorithm-judges.js'
import { type Known, MemoryJudge } from './memory-judge.js'
import type { Scenario } from './scenario.js'
import { ADMITTED } from './units.js'

/**
 * Judges cells whose counts are all in the admission word. Their scenarios have only decisions: an
 * admission word does not say how many units a write takes out.
 */
export function wordJudges(scenario: Scenario, arena: Arena, known: Known): AlgorithmJudges {
  const { timeline, units } = known
  const memory = new MemoryJudge(scenario, arena, known)
  const isBucket = arena.algorithm === 'token-bucket'
  const admittedIn = (key: number, tick: number) => units.charged([ADMITTED], key, 0, tick, 1)

  /** Each tick with admissions, in order, up to `last`. */
  const ticksOf = (key: number, last: number): number[] => {
    const ticks = new Set([...timeline.placesOf(0)].map((place) => timeline.tickOf(place)))
    return [...ticks].filter((tick) => tick <= last && admittedIn(key, tick) > 0).sort((a, b) => a - b)
  }

  /**
   * The units of the window that may last in tick `last`. An admission is noted at the start of its window, or of the
   * one that it has begun while another thread had it begin a little later: less than a window before that.
   */
  const inWindow = (key: number, last: number): number =>
    units.charged([ADMITTED], key, 0, last, timeline.bucketsOf(0))

  /** Clocks of threads that are ahead are so by whole granules, so an admission counts from the start of its tick. */
  const used = (key: number, last: number): number => {
    if (!isBucket) return inWindow(key, last)
    const limit = units.limit(key, 0)
    let level = 0
    let before = 0
    for (const tick of ticksOf(key, last)) {
      level = Math.max(0, level - rate(limit) * (tick - before)) + admittedIn(key, tick)
      before = tick
    }
    return Math.ceil(Math.max(0, level - rate(limit) * (last - before)) - 1e-9)
  }
  const rate = (limit: number) => limit / timeline.bucketsOf(0)

  const judge = (key: number, place: number, limit: number): void => {
    const last = timeline.tickOf(place)
    if (!isBucket) {
      const size = timeline.bucketsOf(0)
      for (let tick = last; tick < last + size; tick++) {
        const sum = inWindow(key, tick)
        if (sum > limit) known.fail('over', `key ${key}: ${sum} in a window, the limit is ${limit}`)
      }
      return
    }
    const latest = Math.max(...[...timeline.placesOf(0)].map((other) => timeline.tickOf(other)))
    const ticks = ticksOf(key, latest)
    for (const from of ticks) {
      for (const to of ticks) {
        if (to < from) continue
        const sum = units.charged([ADMITTED], key, 0, to, to - from + 1)
        const most = limit + rate(limit) * (to - from)
        if (sum > most + 1e-9) known.fail('over', `key ${key}: ${sum} from ${from} to ${to}, at most ${most}`)
      }
    }
  }

  return {
    tickOf: (word) => word >>> 1,
    chargeIn: () => undefined,
    admitted: judge,
    converts: () => {},
    losesCell: () => {},
    usedAtMost: (key, _record, tick) => used(key, tick),
    becomesLive: (way) => memory.checkLive(way),
    judgeAtRest: () => memory.judgeStates(),
  }
}
