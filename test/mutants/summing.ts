// Mistakes in the nodes above the buckets.
import { inCellSize, inCharges, inNodes, inWindow, type Mutant } from './mutant.js'

export const summing: Readonly<Record<string, Mutant>> = {
  'a ring without a spare span': {
    scenario: 'a Fenwick tree: the oldest granule of a window',
    edits: [
      inCellSize('(Math.ceil((buckets + 1) / span) + 1) * span', 'Math.ceil((buckets + 1) / span) * span'),
    ],
  },
  'a late charge to a node of a newer lap': {
    scenario: 'block sums: a late charge against a newer lap',
    edits: [
      inNodes('if (read(words, base + TICK) !== e)\n                    return LATE;', ''),
      inNodes('if (read(words, base + TICK) !== e)\n                return false; // after the bucket', ''),
    ],
  },
  'a sum that does not look at the tick again': {
    scenario: 'a Fenwick tree: a sum that takes as long as the rest of a lap',
    edits: [inWindow('if (this.hasNodes && read(this.words, base + TICK) !== e)', 'if (e < -1)')],
  },
  'a node given a new lap above old counts': {
    scenario: 'block sums: one bucket idle for all laps',
    edits: [inNodes('guarded !== NO_BLOCK && (x & NODE_COUNT) > 0', 'guarded < NO_BLOCK')],
  },
  'a node swept above old counts': {
    scenario: 'block sums: idle for all laps',
    edits: [inNodes('if (guarded !== NO_BLOCK)\n            this.#sweepBuckets(base, guarded, to);', '')],
  },
  'nodes that are not swept': {
    scenario: 'a Fenwick tree: idle for all laps',
    edits: [inNodes('this.sweepBlock(base, p % this.blocks, to);', ';')],
  },
  'a charge taken out of its bucket but not of its nodes': {
    scenario: 'block sums on two levels: a charge is taken out',
    edits: [inCharges('ring.sums.takeOut(base, ring.slot(e), ring.lap, cost);', '')],
  },
  'a sum without the head of the newer lap': {
    scenario: 'a Fenwick tree: a sum at the turn of a lap',
    edits: [inNodes('return before + this.#sumOfLap(base, 0, slot, lap);', 'return before;')],
  },
}
