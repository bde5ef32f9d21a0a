// Mistakes in charging, committing, summing and sweeping.
import { LIVE, STATE } from '#millrace/memory/layout.js'
import {
  inCells,
  inCellTime,
  inCharges,
  inEngine,
  inEstimates,
  inPlain,
  inRing,
  inSummed,
  inTally,
  inWindow,
  type Mutant,
  withoutAttempt,
} from './mutant.js'

/** Moves the first check of an attempt before its read of the admission word. */
export const checksBeforehand = inWindow(
  'const v = readInOrder(words, base + ADM);\n        if (!this.isCurrent(v, way, lo, hi, e))',
  `const isUnchanged = this.isCurrent(${LIVE}, way, lo, hi, e);\n        const v = readInOrder(words, base + ADM);\n        if (!isUnchanged || (v & ${STATE}) !== ${LIVE})`,
)

export const deciding: Readonly<Record<string, Mutant>> = {
  'the admission word before the bucket': {
    scenario: 'three admit on the last unit',
    edits: [
      withoutAttempt,
      inSummed(
        'const charged = this.charge(base, e, cost, reading);\n            if (charged === LATE)',
        'if (compareExchange(words, base + ADM, v, v + cost) === v) { this.chargedTick = e; this.charge(base, e, cost, reading); return ADMITTED; }\n            const charged = LATE;\n            if (charged === LATE)',
      ),
    ],
  },
  'the tick before the admission word': {
    scenario: 'an admission against a rollover',
    edits: [
      withoutAttempt,
      inSummed(
        'const v = load(words, base + ADM);\n            if (!this.isOf(v, way, lo, hi))\n                return GONE;\n            const e = read(words, base + TICK);',
        'const e = read(words, base + TICK);\n            const v = load(words, base + ADM);\n            if (!this.isOf(v, way, lo, hi))\n                return GONE;',
      ),
    ],
  },
  'a sum without a new epoch': {
    scenario: 'an admission against a rollover',
    edits: [inSummed('((v & ~COUNT) + ONE_EPOCH) | sum', '(v & ~COUNT) | sum')],
  },
  'a bucket given a new lap without checking the tick': {
    scenario: 'stalls of up to 200 laps',
    edits: [inCharges('if (ring.distance(read(words, base + TICK), e) >= ring.slots)', 'if (cost < 0)')],
  },
  'no sweep': {
    scenario: 'a cell used once in 64 laps, with one idle bucket',
    edits: [inCellTime('hops.sweep(base, tick, hop, next);', '')],
  },
  'a long move in one hop': {
    scenario: 'a return after exactly 256 laps',
    edits: [
      inRing(
        'return behind <= reach ? behind : reach + all * Math.floor((behind - reach) / all);',
        'return behind;',
      ),
    ],
  },
  'a sweep that reads the tick before the bucket': {
    scenario: 'a stalled sweep against a charge',
    edits: [
      inPlain(
        'const b = load(this.#words, at);\n            if ((b & COUNT) === 0',
        'const now = read(this.#words, base + TICK);\n            const b = load(this.#words, at);\n            if ((b & COUNT) === 0',
      ),
      inPlain('this.#laps.lapOf(i, read(this.#words, base + TICK))', 'this.#laps.lapOf(i, now)'),
    ],
  },
  'a sweep that does not check the tick again': {
    scenario: 'a stalled sweep against a charge',
    edits: [
      inPlain('if ((b & LAP) === this.#laps.lapOf(i, read(this.#words, base + TICK)))', 'if (b === 0)'),
    ],
  },
  'AS_OF without its epoch': {
    scenario: 'costs of 1, 2 and 3 against a limit of 3',
    edits: [inSummed('((note ^ v) & EPOCH) === 0 && ', '')],
  },
  'a second commit without a new epoch': {
    scenario: 'a sum among charges',
    edits: [inSummed('(x + ONE_EPOCH + cost) | 0', '(x + cost) | 0')],
  },
  'no new epoch when a charge is taken out': {
    scenario: 'costs of 1, 2 and 3 against a limit of 3',
    edits: [inSummed('bumpEpoch(base) {', 'bumpEpoch(base) {\n        if (base > 0) return;')],
  },
  'a decision that does not check the name': {
    scenario: 'an expired way is claimed while its old key decides',
    edits: [
      inCells('return read(this.words, this.base(way) + HI) === (hi | this.#record);', 'return true;'),
      inCells('|| read(this.words, NAMES_AT + way) !== lo)', '|| lo === 0)'),
    ],
  },
  'an attempt that does not check the tick before it charges': {
    scenario: 'a charge in a cell that comes back after 256 laps',
    edits: [inWindow('if (!this.isCurrent(v, way, lo, hi, e))\n', 'if (!this.isOf(v, way, lo, hi))\n')],
  },
  // If all reads stay in order, the second check finds nothing new. It is for processors and compilers that
  // reorder plain reads. These mutants show that by moving the first check before the read of the admission
  // word.
  'an attempt that does not check the tick again': {
    scenario: 'three admit while the window rolls over',
    edits: [
      checksBeforehand,
      inWindow('if (this.isCurrent(v, way, lo, hi, e)) {', 'if (this.isOf(v, way, lo, hi)) {'),
    ],
  },
  'an attempt that does not check the name again': {
    scenario: 'an empty way is claimed while its key decides',
    edits: [
      checksBeforehand,
      inWindow('if (this.isCurrent(v, way, lo, hi, e)) {', 'if (read(words, base + TICK) === e) {'),
    ],
  },
  'a charge added to a bucket of another lap': {
    scenario: 'a window of three granules rolls over',
    edits: [inCharges('if ((b & LAP) === ring.lap) {', 'if (cost > 0) {')],
  },
  '< instead of <=': {
    scenario: 'two admit on the last unit',
    edits: [
      inWindow('if ((v & COUNT) + cost > limit)\n', 'if ((v & COUNT) + cost >= limit)\n'),
      inSummed('if ((v & COUNT) + cost > limit) {', 'if ((v & COUNT) + cost >= limit) {'),
    ],
  },
  'one unit above the limit admitted': {
    scenario: 'two admit on the last unit',
    edits: [inWindow('if ((v & COUNT) + cost > limit)\n', 'if ((v & COUNT) + cost > limit + 1)\n')],
  },
  'a window one bucket short': {
    scenario: 'a window of three granules rolls over',
    edits: [inRing('sixteenth > 0 ? this.size - 1 : this.size', 'this.size - 1')],
  },
  'a sum that reaches all ones': {
    test: 'limiter/adjustments',
    edits: [inRing('return Math.min(units, MAX_TOTAL);', 'return units;')],
  },
  'an unchecked overflow of a bucket': {
    test: 'limiter/adjustments',
    edits: [inCharges('if ((b & COUNT) + cost > COUNT)\n                    return OVERFLOWN;', '')],
  },
  'a reading used that is more than an hour old': {
    scenario: 'a stall of more than an hour',
    edits: [inCellTime('if (side === FAR_AHEAD && !isFresh) {', 'if (side === FAR_AHEAD && goal < 0) {')],
  },
  'an unchecked hint of a handle': {
    scenario: 'by a handle whose way was claimed for another key',
    edits: [
      inEngine('guess >= 0 && table.isNamed(guess, lo, hi) ? guess', 'guess >= 0 ? guess'),
      inCells(
        'isOf(v, way, lo, hi) {',
        'isOf(v, way, lo, hi) {\n        if (way >= 0) return (v & STATE) === LIVE;',
      ),
    ],
  },
  'epochs of refunds not counted': {
    test: 'engines/epochs-since',
    edits: [inSummed('this.epochs.count(base);\n        this.endNote(base);', 'this.endNote(base);')],
  },
  'figures at once by a sum that another thread has changed': {
    test: 'engines/figures-at-once',
    edits: [inEstimates('isSame ? sum : algorithm.mostUsed(adm, tick, then, limit)', 'sum')],
  },
  'statistics counted twice': {
    test: 'limiter/stats',
    edits: [inTally('this.#allowed = 0;\n        this.#denied = 0;', 'this.#denied = 0;')],
  },
}
