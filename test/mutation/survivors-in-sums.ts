import type { Reason } from './survivors.js'

/** In the sums and what is made of them, in keys and statistics. */
export const survivorsInSums: readonly Reason[] = [
  {
    why: 'only quicker: the other way comes to the same',
    mutations: [
      'algorithms/forecast.js usedAtCharge: return «this.#smooth || this.#window.hasNodes → true» ? this.used(base, reading) : ring.sum(base, tick, 0);',
      'algorithms/forecast.js untilGone: if («position !== gone.position → true») {',
      'algorithms/forecast.js untilGone: «gone.position = position; → »',
    ],
  },
  {
    why: 'a cell is a window behind the reading at most where it was charged, or ahead of it by an hour: far from half of all ticks',
    mutations: [
      'algorithms/forecast.js untilGone: const age = behind «> → >=» modulus / 2 ? behind - modulus : behind;',
      'algorithms/forecast.js untilGone: const age = behind > modulus / «2 → 3» ? behind - modulus : behind;',
    ],
  },
  {
    why:
      'without another thread there is no lap that overtakes the sum; with one, `remaining` would be told too high, and ' +
      'no decision goes by it',
    mutations: [
      'algorithms/forecast.js usedAtCharge: return this.#smooth || «this.#window.hasNodes → false» ? this.used(base, reading) : ring.sum(base, tick, 0);',
    ],
  },
  {
    why: 'a slot, and so the number of its block, is never below 0: both shifts say the same',
    mutations: [
      'range-sum/blocks.js charge: const block = slot «>>> → >>» BLOCK_BITS;',
      'range-sum/blocks.js charge: const upper = base + this.#upperAt + (block «>>> → >>» BLOCK_BITS);',
      'range-sum/blocks.js takeOut: const block = slot «>>> → >>» BLOCK_BITS;',
      'range-sum/blocks.js takeOut: this.takeOutOf(base + this.#upperAt + (block «>>> → >>» BLOCK_BITS), lap, units);',
      'range-sum/blocks.js roomAbove: const block = slot «>>> → >>» BLOCK_BITS;',
      'range-sum/blocks.js roomAbove: return Math.min(room, this.roomOf(base + this.#upperAt + (block «>>> → >>» BLOCK_BITS), lap));',
      'range-sum/blocks.js sumOfBlocks: sum += this.countOf(base + this.#upperAt + (block «>>> → >>» BLOCK_BITS), lap);',
      'range-sum/blocks.js findInLap: const block = slot «>>> → >>» BLOCK_BITS;',
      'range-sum/blocks.js findInLap: node = this.#upperAt + (block «>>> → >>» BLOCK_BITS);',
      'range-sum/blocks.js #isHere: return this.countOf(base + this.#upperAt + (block «>>> → >>» BLOCK_BITS), lap) > this.left;',
      'range-sum/blocks.js sweepBlock: const at = base + this.#upperAt + (block «>>> → >>» BLOCK_BITS);',
      'range-sum/fenwick.js charge: const block = slot «>>> → >>» BLOCK_BITS;',
      'range-sum/fenwick.js takeOut: for (let node = slot «>>> → >>» BLOCK_BITS;; node &= node - 1) {',
      'range-sum/fenwick.js findInLap: const block = slot «>>> → >>» BLOCK_BITS;',
      'range-sum/nodes.js #sumOfLap: const block = (from + BLOCK - 1) «>>> → >>» BLOCK_BITS;',
      'range-sum/nodes.js #sumOfLap: return single + this.sumOfBlocks(base, block, to «>>> → >>» BLOCK_BITS, lap);',
    ],
  },
  {
    why:
      '0 where there is no second level, and else far beyond 1: it begins behind all buckets, and has three nodes at ' +
      'least',
    mutations: [
      'range-sum/blocks.js constructor: this.#upperAt = shape.upper > «0 → 1» ? this.nodesAt + shape.blocks : 0;',
      'range-sum/blocks.js charge: if (this.#upperAt > «0 → 1») {',
      'range-sum/blocks.js charge: if (charged !== CHARGED && this.#upperAt > «0 → 1»)',
      'range-sum/blocks.js takeOut: if (this.#upperAt > «0 → 1»)',
      'range-sum/blocks.js sumOfBlocks: if (this.#upperAt > «0 → 1») {',
      'range-sum/blocks.js findInLap: else if (this.#upperAt > «0 → 1» && (block & (BLOCK - 1)) === 0 && !this.#isHere(base, block, lap)) {',
      'range-sum/blocks.js sweepBlock: if (this.#upperAt > «0 → 1» && (block & (BLOCK - 1)) === 0) {',
    ],
  },
  {
    why: '0, or a block and more',
    mutations: [
      'range-sum/blocks.js findInLap: const counted = span > «0 → 1» ? this.countOf(base + node, lap) : 0;',
      'range-sum/blocks.js findInLap: if (span > «0 → 1» && counted <= this.left) {',
    ],
  },
  {
    why: 'not asked for where there is no whole node',
    mutations: [
      'range-sum/blocks.js findInLap: const counted = span > 0 ? this.countOf(base + node, lap) : «0 → 1»;',
      'range-sum/fenwick.js findInLap: const counted = isWhole ? this.countOf(base + this.nodesAt + block, lap) : «0 → 1»;',
    ],
  },
  {
    why:
      'behind the tick at the end of the window nothing of its lap was ever charged: no more is counted, nor more than ' +
      'a block read in vain',
    mutations: [
      'range-sum/blocks.js sumOfBlocks: for (; «block <= to → true» && (block & (BLOCK - 1)) > 0; block++) {',
      'range-sum/blocks.js sumOfBlocks: for (; block «<= → <» to; block += BLOCK) {',
      'range-sum/nodes.js #sumOfLap: const single = this.#sumOfBuckets(base, from, Math.min(block << BLOCK_BITS, to + «1 → 2»), lap);',
    ],
  },
  {
    why:
      'where a node counts just what is left, its buckets or blocks are read in vain before the next node: the same ' +
      'place, some reads later',
    mutations: [
      'range-sum/blocks.js #isHere: return this.countOf(base + this.#upperAt + (block >>> BLOCK_BITS), lap) «> → >=» this.left;',
      'range-sum/fenwick.js findInLap: if (isWhole && counted «<= → <» this.left) {',
    ],
  },
  {
    why: 'any number below 0 says that there is none',
    mutations: [
      'range-sum/nodes.js outside: export const NO_BLOCK = -«1 → 2»;',
      'range-sum/nodes.js find: const found = length > 0 ? this.findInLap(base, Math.max(from, 0), slot, lap) : -«1 → 2»;',
      'algorithms/forecast.js #lastToLeave: return -«1 → 2»;',
    ],
  },
  {
    why: 'a value to begin with, written before anybody reads it',
    mutations: [
      'range-sum/nodes.js left: left = «0 → 1»;',
      'algorithms/forecast.js #gone: #gone = { position: Number.NaN, ms: «0 → 1» };',
    ],
  },
  {
    why: 'a window that begins with its lap: of the lap before no tick is summed, or looked through',
    mutations: [
      'range-sum/nodes.js sum: if (from «>= → >» 0)',
      'range-sum/nodes.js sum: if (from >= «0 → 1»)',
      'range-sum/nodes.js find: if («from < 0 → true») {',
      'range-sum/nodes.js find: if (from «< → <=» 0) {',
      'range-sum/nodes.js find: if (from < «0 → 1») {',
    ],
  },
  {
    why: 'in the lap before, a window begins behind the slot in which it ends, never at slot 0',
    mutations: [
      'range-sum/nodes.js find: if (found «>= → >» 0)',
      'range-sum/nodes.js find: if (found >= «0 → 1»)',
    ],
  },
  {
    why: 'of no ticks there is nothing to look through, and nothing to sum',
    mutations: [
      'range-sum/nodes.js find: const found = «length > 0 → true» ? this.findInLap(base, Math.max(from, 0), slot, lap) : -1;',
      'range-sum/nodes.js find: const found = length «> → >=» 0 ? this.findInLap(base, Math.max(from, 0), slot, lap) : -1;',
      'algorithms/forecast.js #sum: return «length <= 0 → false» ? 0 : ring.sums.sum(base, slot, ring.lap, length);',
      'algorithms/forecast.js #sum: return length «<= → <» 0 ? 0 : ring.sums.sum(base, slot, ring.lap, length);',
    ],
  },
  {
    why: 'a short cut: what follows comes to the same by a longer way, and writes nothing',
    mutations: ['range-sum/nodes.js sweep: if («p > end → false»)'],
  },
  {
    why: 'a hop of more than 64 rings brooms some of it twice',
    mutations: [
      'range-sum/plain.js sweep: «p = Math.max(p, end - this.#ring + 1); → »',
      'range-sum/plain.js sweep: p = Math.max(p, end - this.#ring «+ → -» 1);',
      'range-sum/plain.js sweep: p = Math.max(p, end - this.#ring + «1 → 0»);',
      'range-sum/nodes.js sweep: «p = Math.max(p, end - this.blocks + 1); → »',
      'range-sum/nodes.js sweep: p = Math.max(p, end - this.blocks «+ → -» 1);',
      'range-sum/nodes.js sweep: p = Math.max(p, end - this.blocks + «1 → 0»);',
    ],
  },
  {
    why: 'a short cut: the strings that it lets pass are looked at once more, and no other',
    mutations: [
      "memory/keys.js fingerprintsOf: if («typeof key !== 'string' || key.length === 0 || key.length > MAX_KEY_LENGTH → true»)",
      "memory/keys.js fingerprintsOf: if (typeof key !== 'string' || key.length === 0 || key.length «> → >=» MAX_KEY_LENGTH)",
    ],
  },
  {
    why: 'by the strict edge a window ends with a granule, and everything leaves a whole granule later',
    mutations: [
      'algorithms/forecast.js #look: const now = newest > whole ? newest : whole + («this.#smooth → true» ? reading.sixteenth / 16 : 0);',
      'algorithms/forecast.js #look: const now = newest > whole ? newest : whole + (this.#smooth ? reading.sixteenth / 16 : «0 → 1»);',
      'algorithms/forecast.js #usedIn: if («!this.#smooth → false» || length === 0 || Number.isInteger(now))',
    ],
  },
  {
    why:
      'where the cell’s tick is ahead of the clock, no part of its oldest granule is out, and nothing leaves before the ' +
      'clock is there',
    mutations: [
      'algorithms/forecast.js #look: const now = «newest > whole → false» ? newest : whole + (this.#smooth ? reading.sixteenth / 16 : 0);',
    ],
  },
  {
    why: 'asked only where a part of the oldest granule is out',
    mutations: [
      'algorithms/forecast.js #counting: return «age > 0 → true» ? Math.ceil(count * (1 - age)) : count;',
      'algorithms/forecast.js #counting: return age «> → >=» 0 ? Math.ceil(count * (1 - age)) : count;',
    ],
  },
  {
    why:
      'a refund between the look at what is used and the one at what must leave, both of plain reads: tests interrupt ' +
      'at atomic operations; the figure is a snapshot that is overtaken',
    mutations: [
      'algorithms/forecast.js untilFits: if («age < 0 → false»)',
      'algorithms/forecast.js untilFits: return reading.nowMs «- → +» fromMs; (2)',
    ],
  },
  {
    why: '-1, that there is none, never stands the two looks that follow: no tick and one fewer both fit',
    mutations: [
      'algorithms/forecast.js #lastToLeave: if («found >= 0 → true» && fits(found) && !fits(found + 1))',
    ],
  },
  {
    why:
      'what `find` leaves fits but for a charge between two sums of plain reads: the figure is a snapshot that is ' +
      'overtaken',
    mutations: [
      'algorithms/forecast.js #lastToLeave: if («found >= 0 && fits(found) → true» && !fits(found + 1))',
      'algorithms/forecast.js #lastToLeave: if (found >= 0 && «fits(found) → true» && !fits(found + 1))',
    ],
  },
  {
    why: 'an age of 0 is found by the search, too',
    mutations: [
      'algorithms/forecast.js #lastToLeave: if (found «>= → >» 0 && fits(found) && !fits(found + 1))',
      'algorithms/forecast.js #lastToLeave: if (found >= «0 → 1» && fits(found) && !fits(found + 1))',
    ],
  },
  {
    why: 'a tick or two more to search, of which it is known that they do not fit',
    mutations: [
      'algorithms/forecast.js #lastToLeave: for (let high = length «- → +» 1; low < high;) {',
      'algorithms/forecast.js #lastToLeave: for (let high = length - «1 → 0»; low < high;) {',
    ],
  },
  {
    why: 'a search from the end on, one after the other',
    mutations: ['algorithms/forecast.js #lastToLeave: const middle = Math.ceil((low + high) / «2 → 1»);'],
  },
  {
    why: 'read for its order alone: the processors that these runs are on keep reads in order by themselves',
    mutations: ['range-sum/nodes.js chargeNode: «x = load(words, at); → »'],
  },
  {
    why: 'a short cut: a window within one lap has nothing before it, and the loop that follows no round',
    mutations: [
      'range-sum/plain.js sum: if («from >= first → false»)',
      'range-sum/plain.js sum: if (from «>= → >» first)',
    ],
  },
]
