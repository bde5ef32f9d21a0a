// Mistakes in refunds, penalties, blocks and conversions.
import {
  inAdjustments,
  inBlockBound,
  inBlocking,
  inCharges,
  inConversion,
  inFixedWindow,
  inInsertion,
  inKeyChanges,
  inRefundMarks,
  inSummed,
  inSummedAdjustments,
  type Mutant,
} from './mutant.js'

export const adjusting: Readonly<Record<string, Mutant>> = {
  'a refund that is not counted in its bucket': {
    scenario: 'a refund among decisions',
    edits: [inAdjustments('refundsOf(b) < 2 ? b + ONE_REFUND', 'refundsOf(b) < 2 ? b')],
  },
  'a note that outlives a refund': {
    scenario: 'an epoch goes round by refunds',
    edits: [
      inSummed('this.epochs.count(base);\n        this.endNote(base);\n', 'this.epochs.count(base);\n'),
    ],
  },
  'a note that outlives a block': {
    scenario: 'an epoch goes round by blocks',
    edits: [inBlocking('this.#algorithm.onBlock(base);', '')],
  },
  'a mark that is turned without a generation': {
    scenario: 'refunds by key while an admission is given back',
    edits: [inRefundMarks('add(this.#words, this.#extra(base) + GENERATION, 1);', '')],
  },
  'a mark that is turned while another thread gives back': {
    scenario: 'refunds by key while an admission is given back',
    edits: [inRefundMarks('const mark = isAlone ? 1 : SUNK;', 'const mark = 1;')],
  },
  'a turn that is not announced': {
    scenario: 'refunds by key that overlap, and an admission that one of them took',
    edits: [
      inRefundMarks('+ GIVING, ONE_TURN) === 0', '+ GIVING, 0) === 0'),
      inRefundMarks('+ GIVING, -ONE_TURN)', '+ GIVING, 0)'),
    ],
  },
  'a charge given back from a marked bucket without announcing it': {
    scenario: 'refunds by key while an admission is given back',
    edits: [
      inRefundMarks('+ GIVING, 1) >>> 0', '+ GIVING, 0) >>> 0'),
      inRefundMarks('+ GIVING, -1);', '+ GIVING, 0);'),
    ],
  },
  'a generation that is not compared': {
    scenario: 'refunds by key while an admission is given back',
    edits: [inRefundMarks('(stamp & 3)) === stamp', '(stamp & 3)) !== 0')],
  },
  'a bucket that stays sunk': {
    test: 'limiter/refund',
    edits: [inRefundMarks('const mark = isAlone ? 1 : SUNK;', 'const mark = SUNK;')],
  },
  'a refund that overflows the mark of a sunk bucket': {
    test: 'algorithms/interrupted-charges',
    edits: [inAdjustments('refundsOf(b) < 2 ? b + ONE_REFUND', 'refundsOf(b) !== 2 ? b + ONE_REFUND')],
  },
  'a sunk bucket that is raised to no mark': {
    test: 'algorithms/interrupted-charges',
    edits: [
      inRefundMarks(
        'const mark = isAlone ? 1 : SUNK;',
        'const mark = isAlone ? (refundsOf(b) === SUNK ? 0 : 1) : SUNK;',
      ),
    ],
  },
  'a charge given back to nodes after its window': {
    test: 'limiter/refund',
    edits: [
      inAdjustments(
        'ring.distance(load(words, base + TICK), tick) >= ring.size',
        'ring.distance(load(words, base + TICK), tick) >= ring.slots',
      ),
    ],
  },
  'a refund that does not check the name again': {
    scenario: 'a refund while its way is claimed',
    edits: [
      inAdjustments('if (this.tickOf(way, lo, hi) === undefined)', 'if (most < 0)'),
      inAdjustments('const now = this.tickOf(way, lo, hi);', 'const now = newest;'),
    ],
  },
  'a refund that starts with the newest bucket': {
    test: 'limiter/refund',
    edits: [
      inAdjustments(
        'ring.sums.find(base, slot, ring.lap, length, 0)',
        'ring.sums.find(base, slot, ring.lap, length, Math.max(0, ring.sums.sum(base, slot, ring.lap, length) - 1))',
      ),
    ],
  },
  'an undo that ignores refunds': {
    scenario: 'a refund among decisions',
    edits: [inCharges('(b & (LAP | REFUNDS)) !== expected', '(b & LAP) !== (expected & LAP)')],
  },
  'UNTIL stored without a comparison': {
    scenario: 'a key is blocked while its way is claimed for another blocked key',
    edits: [
      inBlocking(
        'if (compareExchange(words, base + UNTIL, u, this.untilOfNextTry | 0) !== u)\n                continue;',
        'store(words, base + UNTIL, this.untilOfNextTry | 0);',
      ),
      inBlocking('import { compareExchange, load }', 'import { compareExchange, load, store }'),
    ],
  },
  'the admission word blocked before UNTIL is set': {
    scenario: 'a block runs out among decisions',
    edits: [
      inBlocking(
        'if (compareExchange(words, base + UNTIL, u, this.untilOfNextTry | 0) !== u)\n                continue;\n            const shut = ((v | blockMask) + ONE_EPOCH) | 0;\n            if (compareExchange(words, base + ADM, v, shut) !== v)\n                continue;',
        'const shut = ((v | blockMask) + ONE_EPOCH) | 0;\n            if (compareExchange(words, base + ADM, v, shut) !== v)\n                continue;\n            compareExchange(words, base + UNTIL, u, this.untilOfNextTry | 0);',
      ),
    ],
  },
  'a block ended by the sum of an old reading': {
    scenario: 'one unblocks, another blocks',
    edits: [inSummedAdjustments('read(words, base + TICK), reading)', 'reading.tick, reading)')],
  },
  'one UNTIL word for the ends of two blocks': {
    scenario: 'a key blocked again while its way goes to another',
    edits: [inBlocking('u === leftUntil(this.untilOfNextTry)', 'false')],
  },
  'a first charge given back by its tick alone': {
    test: 'algorithms/interrupted-charges',
    edits: [inFixedWindow('this.time.distance(tickOf(w), tickOf(charged)) < this.#size', 'w === charged')],
  },
  'the end of a block left as it is to the next key': {
    scenario: 'a key blocked again while its way goes to another',
    edits: [inInsertion('this.#cells.leaveBlock(base, this.#reading.nowMs);', '')],
  },
  'other blocks counted before the new one is set': {
    scenario: 'two block two keys, and one block stays',
    edits: [
      inKeyChanges(
        'const set = (way) =>',
        'count(this.#words, HEADER.BLOCKS_EVICTED, this.#views.blockBound.hold(lo, hi, this.#views.reading));\n        const set = (way) =>',
      ),
      inKeyChanges('ended += blockBound.hold(lo, hi, reading);', ''),
    ],
  },
  'a block ended by clearing its counts': {
    scenario: 'a block ends for another while its key decides',
    edits: [
      inSummed(
        'return this.resum(base, v, read(this.words, base + TICK), reading);',
        'return compareExchange(this.words, base + ADM, v, ((v & ~COUNT) + ONE_EPOCH) | 0) === v;',
      ),
    ],
  },
  'a block evicted by an admission word that was loaded after its selection': {
    test: 'algorithms/interrupted-blocks',
    edits: [inBlockBound('endBlock(base, this.#chosen,', 'endBlock(base, load(this.#words, base + ADM),')],
  },
  'a block of a cell of another record ended by the own record': {
    scenario: 'a block ends for another while its key is converted',
    edits: [inBlockBound('if (this.#isOwn(way))', 'if (this.#conversion === undefined || this.#isOwn(way))')],
  },
  'blocks ended by a record that is over': {
    scenario: 'a block ends for another while its key is converted again',
    edits: [
      inBlockBound(
        '!this.#conversion?.convert(way) || this.#isOutdated()',
        '!this.#conversion?.convert(way)',
      ),
    ],
  },
  'a conversion finished by a record that is over': {
    test: 'algorithms/interrupted-stalls',
    edits: [
      inConversion('reading.take();\n            if (this', 'reading.take();\n            if (false && this'),
    ],
  },
  'a block evicted from the key that is being blocked': {
    test: 'limiter/block-bound',
    edits: [inBlockBound('this.#table.isNamed(way, lo, hi) || ', '')],
  },
  'a penalty committed without a new epoch': {
    scenario: 'a penalty beyond the largest count, against a sum',
    edits: [inSummed('((v & ~COUNT) + ONE_EPOCH) | next) !== v)', '(v & ~COUNT) | next) !== v)')],
  },
}
