// Mistakes in refunds, penalties and blocks.
import { inAdjustments, inWindow, type Mutant } from './mutant.js'

export const adjusting: Readonly<Record<string, Mutant>> = {
  'a refund that is not counted in its bucket': {
    scenario: 'a refund among decisions',
    edits: [inAdjustments('Math.min((b & REFUNDS) + ONE_REFUND, REFUNDS)', 'b & REFUNDS')],
  },
  'a note that outlives what left its bucket': {
    scenario: 'an epoch goes round by refunds',
    edits: [inWindow('        this.endNote(base);\n', '')],
  },
  'a note that outlives a block': {
    scenario: 'an epoch goes round by blocks',
    edits: [inAdjustments('this.#window.endNote(base);', '')],
  },
  'a refund that does not look at the name again': {
    scenario: 'a refund while its way is claimed',
    edits: [
      inAdjustments('if (this.#tickOf(way, lo, hi) === undefined)', 'if (most < 0)'),
      inAdjustments('const now = this.#tickOf(way, lo, hi);', 'const now = newest;'),
    ],
  },
  'a refund that begins with the newest': {
    test: 'limiter/refund',
    edits: [
      inAdjustments(
        'ring.sums.find(base, slot, ring.lap, length, 0)',
        'ring.sums.find(base, slot, ring.lap, length, Math.max(0, ring.sums.sum(base, slot, ring.lap, length) - 1))',
      ),
    ],
  },
  'an undo that does not look at refunds': {
    scenario: 'a refund among decisions',
    edits: [inWindow('|| refundsOf(b) !== refunds || refunds === MOST_REFUNDS)', ')')],
  },
  'until stored, not compared': {
    scenario: 'a key is blocked whose way is claimed for one that is blocked, too',
    edits: [
      inAdjustments(
        'if (compareExchange(words, base + UNTIL, u, until | 0) !== u)\n                continue;',
        'store(words, base + UNTIL, until | 0);',
      ),
      inAdjustments(
        'import { compareExchange, load, read }',
        'import { compareExchange, load, read, store }',
      ),
    ],
  },
  'the admission word shut before until': {
    scenario: 'a block runs out among decisions',
    edits: [
      inAdjustments(
        'if (compareExchange(words, base + UNTIL, u, until | 0) !== u)\n                continue;\n            const shut = ((v & ~COUNT) + ONE_EPOCH) | BLOCKED;\n            if (compareExchange(words, base + ADM, v, shut) === v)\n                return true;',
        'const shut = ((v & ~COUNT) + ONE_EPOCH) | BLOCKED;\n            if (compareExchange(words, base + ADM, v, shut) === v) {\n                compareExchange(words, base + UNTIL, u, until | 0);\n                return true;\n            }',
      ),
    ],
  },
  'a block ended by the sum of an old reading': {
    scenario: 'one unblocks, another blocks',
    edits: [inAdjustments('read(words, base + TICK), reading)', 'reading.tick, reading)')],
  },
  'a penalty committed without a new epoch': {
    scenario: 'a penalty beyond all counting, against a sum',
    edits: [inAdjustments('((v & ~COUNT) + ONE_EPOCH) | next) === v)', '(v & ~COUNT) | next) === v)')],
  },
}
