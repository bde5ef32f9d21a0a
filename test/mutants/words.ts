// Mistakes in the algorithms that count in the admission word.
import { inBucket, inFixedWindow, inWords, type Mutant } from './mutant.js'

const CHECKS_NAME = 'if ((v & SHUT) !== 0 || !this.isOf(v, way, lo, hi))'

export const words: Readonly<Record<string, Mutant>> = {
  'a word emptied in its epoch': {
    scenario: 'a rollover against a rollover; fixed-window',
    edits: [inWords('((v & ~METER) + ONE_EPOCH) | this.emptyAt(tick)', '(v & ~METER) | this.emptyAt(tick)')],
  },
  'a tick that moves on before its word is emptied': {
    scenario: 'an admission against a rollover; fixed-window',
    edits: [
      inWords(
        'compareExchange(words, base + TICK, w, marked(reading.tick));',
        'compareExchange(words, base + TICK, w, settled(reading.tick));',
      ),
    ],
  },
  'an empty window that moves by a mark': {
    scenario: 'first charges of a key that was blocked',
    edits: [
      inWords(
        'w, settled(reading.tick));\n        return false;',
        'w, marked(reading.tick));\n        return false;',
      ),
    ],
  },
  'a window that begins without a charge': {
    test: 'algorithms/word-cells',
    edits: [inFixedWindow('return (v & METER) === 0;', 'return false;')],
  },
  'an attempt that counts in a window without a charge': {
    scenario: 'first charges of a key that was blocked',
    edits: [inFixedWindow('((v & METER) === 0 ? 1 : this.#size)', 'this.#size')],
  },
  'a tick settled by whoever finds it marked, without emptying': {
    scenario: 'an admission against a rollover; fixed-window',
    edits: [inWords('if (!this.empties(base, v, w))\n            return;', '')],
  },
  'a word that does not check the name': {
    scenario: 'a live way is evicted while its key decides; token-bucket',
    edits: [
      inWords(CHECKS_NAME, 'if ((v & SHUT) !== 0 || (v & STATE) !== LIVE)'),
      inWords(
        'if (!this.isOf(v, way, lo, hi))\n                return GONE;',
        'if ((v & STATE) !== LIVE)\n                return GONE;',
      ),
    ],
  },
  'a bucket that admits a token more': {
    scenario: 'two admit on the last unit; token-bucket',
    edits: [inBucket('next - now > this.#full ? v', 'next - now > this.#full + this.#timeOf(1, limit) ? v')],
  },
  'a bucket that is no larger by another limit': {
    test: 'algorithms/word-cells',
    edits: [inBucket('this.#full = fullBy(limit, this.#b);', 'this.#full = this.#b;')],
  },
  'a bucket that is larger by a token or more': {
    test: 'algorithms/word-cells',
    edits: [
      inBucket('this.#full = fullBy(limit, this.#b);', 'this.#full = limit * Math.ceil(this.#b / limit);'),
    ],
  },
  'a bucket that counts from its tick and not from the reading': {
    test: 'algorithms/word-cells',
    edits: [
      inBucket(
        'if (reading.tick === tickOf(w))\n            return this.#inTick(reading);',
        'if (reading.tick === tickOf(w))\n            return 0;',
      ),
    ],
  },
}
