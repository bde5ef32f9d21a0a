// Mistakes in the sliding log. Those of concurrent refunds are in the model.
import { inLog, inLogAdjustments, inLogEntries, inSummed, type Mutant } from './mutant.js'

const DEFINITION = 'algorithms/sliding-log'

export const logging: Readonly<Record<string, Mutant>> = {
  'a unit dated by the millisecond before its reading': {
    test: DEFINITION,
    edits: [inLog('position === Math.floor(position) ? e : this.time.after(e, 1)', 'e')],
  },
  'a log that is not cleared after a month': {
    test: DEFINITION,
    edits: [inLog('if (this.#hasPeriods)', 'if (this.#hasPeriods && base < 0)')],
  },
  'a log that is not swept': {
    test: DEFINITION,
    edits: [inLogEntries('if (!counts(entry) || this.isIn(entry, to))', 'if (base > 0)')],
  },
  'a log that moves on in one hop': {
    test: DEFINITION,
    edits: [inLogEntries('if (behind <= SWEEP_TICKS)', 'if (behind > 0)')],
  },
  'a refund by key that does not say so': {
    test: DEFINITION,
    edits: [inLogAdjustments('entries.countRefund(base);', '')],
  },
  'a refund that starts with the newest unit': {
    test: DEFINITION,
    edits: [inLogEntries('b.age - a.age', 'a.age - b.age')],
  },
  'a unit that counts a millisecond longer': {
    test: DEFINITION,
    edits: [inLogEntries('ageOf(entry, e) < this.#window', 'ageOf(entry, e) <= this.#window')],
  },
  'a sum that holds for longer than a window': {
    test: DEFINITION,
    edits: [inLogEntries('let oldest = 0;', 'let oldest = -MOST_AHEAD;')],
  },
  'a sum that still holds when a unit has left': {
    test: DEFINITION,
    edits: [inLog('left > 0 && ', '')],
  },
  'a penalty that finds no room': {
    test: DEFINITION,
    edits: [
      inLogAdjustments(
        'for (let left = amount - free, tries = 0; left > 0; tries = again(tries))',
        'for (let left = amount - free; left < 0; )',
      ),
    ],
  },
  'a charge of a log that is not taken out': {
    scenario: 'costs of 1, 2 and 3 against a limit of 3; sliding-log',
    edits: [inLogEntries('if (this.clear(this.#places[i], this.#written[i]))', 'if (this.#count < 0)')],
  },
  'a log that commits on another word without a new epoch': {
    scenario: 'a sum among charges; sliding-log',
    edits: [inSummed('(x + ONE_EPOCH + cost) | 0', '(x + cost) | 0')],
  },
}
