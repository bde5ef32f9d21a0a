// Mistakes in insertion.
import { inInsertion, inRing, inSummed, inTable, type Mutant } from './mutant.js'

export const inserting: Readonly<Record<string, Mutant>> = {
  'a way that does not settle its tick': {
    scenario: 'a way lost to another key and won back',
    edits: [
      inInsertion('this.#reading.take(); // after the scan: see "Why settle"', ''),
      inSummed(
        'promote(base, named, reading) {\n        this.enter(base, reading);',
        'promote(base, named, reading) {',
      ),
    ],
  },
  'a way that settles before it looks for others': {
    scenario: 'two cells of one key, one after the other',
    edits: [
      inInsertion(
        'const named = this.#claim(way, lo, hi);',
        'const named = this.#claim(way, lo, hi);\n        this.#reading.take();\n        this.#cells.enter(this.#table.base(way), this.#reading);',
      ),
      inInsertion('this.#reading.take(); // after the scan: see "Why settle"', ''),
      inSummed(
        'promote(base, named, reading) {\n        this.enter(base, reading);',
        'promote(base, named, reading) {',
      ),
    ],
  },
  'an empty way claimed that another clock may still count': {
    scenario: 'an empty way is claimed, beside a clock that is a granule behind',
    edits: [
      inInsertion(
        'const isEmpty = this.#cells.isEmpty(v, tick) && this.#cells.isPast(base, tick, this.#reading);',
        'const isEmpty = this.#cells.isEmpty(v, tick);',
      ),
    ],
  },
  'a claim without a new epoch': {
    scenario: 'an expired way is claimed while its old key decides',
    edits: [inInsertion('((v + ONE_EPOCH) & EPOCH) | CLAIMED', '(v & EPOCH) | CLAIMED')],
  },
  'a way marked NAMED before its name is written': {
    scenario: 'three keys, one stale name',
    edits: [inInsertion('((v + ONE_EPOCH) & EPOCH) | CLAIMED', '((v + ONE_EPOCH) & EPOCH) | NAMED')],
  },
  'no scan': {
    scenario: 'two insert one new key',
    edits: [inInsertion('named !== undefined && this.#isOnly(way, named, lo, hi)', 'named !== undefined')],
  },
  'no veto': {
    scenario: 'two insert one new key',
    edits: [inInsertion('if (compareExchange(words, adm, x, (x & ~STATE) | FREE) === x)', 'if (adm > 0)')],
  },
  'promoted by a plain store': {
    scenario: 'two insert one new key',
    edits: [
      inSummed(
        'return compareExchange(this.words, base + ADM, named, (named & ~STATE) | LIVE) === named;',
        'compareExchange(this.words, base + ADM, load(this.words, base + ADM), (named & ~STATE) | LIVE);\n        return true;',
      ),
    ],
  },
  'a blocked way claimed while few ways are blocked': {
    scenario: 'a blocked key is not displaced',
    edits: [inInsertion('blocked > MOST_BLOCKED', 'blocked > 0')],
  },
  'a claim that ignores blocks': {
    scenario: 'a blocked key is not displaced',
    edits: [
      inInsertion(
        'if (this.#cells.isBlocked(base, v, this.#reading.nowMs)) {\n                    blocked++;\n                    continue;\n                }',
        '',
      ),
      inInsertion(
        'if (isBlocked && !this.#endsBlock)\n            return undefined; // blocked since it was chosen',
        '',
      ),
    ],
  },
  'an expired way claimed after its key came back': {
    scenario: 'a key comes back to its expired way while another one takes it',
    edits: [
      inInsertion('if (stillCounts && !this.#displaces)', "if (stillCounts && this.#onFull !== 'evict')"),
    ],
  },
  'a block that is inherited': {
    scenario: 'a blocked way goes to a new key while its own decides',
    edits: [inSummed('Math.min(v & COUNT, MAX_TOTAL)', 'v & COUNT')],
  },
  'a block that keeps a new key out': {
    test: 'limiter/block-bound',
    edits: [inInsertion('blocked > MOST_BLOCKED', 'blocked > 2 * WAYS_PER_SET')],
  },
  'a taken way that is not counted': {
    test: 'memory/statistics',
    edits: [
      inInsertion(
        'if (this.#cells.promote(base, named, this.#reading))\n                add(this.#words, HEADER.KEYS, 1);',
        'this.#cells.promote(base, named, this.#reading);',
      ),
    ],
  },
  'a lost way that is not counted': {
    test: 'memory/statistics',
    edits: [inInsertion('if (wasLive)\n            add(words, HEADER.KEYS, -1);', '')],
  },
  'a way expired a granule too early': {
    scenario: 'a table that is full of live keys denies',
    edits: [
      inRing(
        'return this.behind(base, tick, reading) > this.size;',
        'return this.behind(base, tick, reading) >= this.size - 1;',
      ),
    ],
  },
  'a way expired that another clock may still count': {
    scenario: 'a way lost and won back, beside a clock that is a granule behind',
    edits: [
      inRing(
        'return this.behind(base, tick, reading) > this.size;',
        'return this.behind(base, tick, reading) >= this.size;',
      ),
    ],
  },
  'a key that displaces itself': {
    scenario: 'three insert one new key',
    edits: [inInsertion('if (wasLive && this.#table.isOfKey(way, lo, hi))\n            return true;', '')],
  },
  'inherited counts that are dropped': {
    scenario: 'a live way is evicted, and its counts are taken over',
    edits: [inInsertion('const payload = this.#cells.inherited(v, expired, isOther);', 'const payload = 0;')],
  },
  'a scan of the first set only': {
    scenario: 'two insert one new key, each another way',
    edits: [
      inInsertion(
        'for (let i = 0; i < 2 * WAYS_PER_SET; i++) {\n            const other',
        'for (let i = 0; i < WAYS_PER_SET; i++) {\n            const other',
      ),
    ],
  },
  'the name of a way that is not live taken for the key': {
    scenario: 'two insert one new key, each another way',
    edits: [
      inTable(
        'return (v & STATE) === LIVE && this.isNamed(way, lo, hi);',
        'return v !== 0 && this.isNamed(way, lo, hi);',
      ),
    ],
  },
}
