// Mistakes in changes of the window, and in the conversion of cells. These are not among them, because they
// make no difference to any promise:
//  - Only one look at CURRENT around a claim. A claim expects an admission word that its thread loaded before
//    the first look. A fence or another claim changes that word. So of a later record the way can only have
//    a flipped name, and the thread that flipped it finds another name before its fence.
//  - The reading of a conversion taken between its flip and its fence. Every unit of the old record was
//    charged by a reading from before the change.
//  - The name not read again before a fence. The thread then looks at CURRENT after its reading, and reads
//    the name before it carries. The cell has only got another epoch.
//  - The tick of a sum not compared. A thread that has advanced it and committed has changed the admission
//    word. If it has only charged, it can't commit after the fence.
//  - The name not read again before a carry. It may change between that and the charge as well. Then the
//    thread can't finish, and takes out what it has carried.
import {
  inCells,
  inCellTime,
  inConversion,
  inEngine,
  inInsertion,
  inKeyChanges,
  inPast,
  inPolicyPlaces,
  inPolicyPlans,
  inRecords,
  inSummed,
  inViews,
  inWordAdjustments,
  type Mutant,
} from './mutant.js'

const FENCE = 'if (compareExchange(words, base + ADM, v, (v + ONE_EPOCH) | 0) !== v)\n            return;'
const FINISH = 'const isFinished = compareExchange(words, base + HI, name, name & ~CONVERTING) === name;'
const TAKE = 'const record = add(words, HEADER.RECORDS_USED, 1);'
const ELSE = 'else if (single.decides(lo, hi, cost, hint))'
const CARRY = 'const carried = units > 0 ? algorithm.carry(base, units, placed) : undefined;'
const TAKE_BACK = 'if (!isFinished && carried !== undefined)'

export const changing: Readonly<Record<string, Mutant>> = {
  'a conversion without a fence': {
    scenario: 'a change and a look beside a decision',
    edits: [inConversion(FENCE, '')],
  },
  'a conversion that takes no reading after its fence': {
    scenario: 'a conversion by an older reading than that of the last charge',
    edits: [inConversion('reading.take();\n            if (this', 'if (this')],
  },
  'a conversion that carries nothing': {
    scenario: 'decisions around a change to a window that is longer',
    edits: [inConversion(CARRY, 'const carried = undefined;')],
  },
  'a conversion that finishes before it carries': {
    scenario: 'a key is converted by two threads, to a window that is longer',
    edits: [inConversion(FINISH, ''), inConversion(CARRY, `${FINISH}\n        ${CARRY}`)],
  },
  'a carry that stays although another thread has finished': {
    scenario: 'a conversion beside a look',
    edits: [inConversion(TAKE_BACK, 'if (false)')],
  },
  'a carry that the thread takes out that finishes': {
    scenario: 'a conversion beside a look',
    edits: [inConversion(TAKE_BACK, 'if (isFinished && carried !== undefined)')],
  },
  ...Object.fromEntries(
    ['fixed-window', 'token-bucket'].map((algorithm) => [
      `a carry on top of that of another thread: ${algorithm}`,
      {
        scenario: `a conversion beside a look; ${algorithm}`,
        edits: [inWordAdjustments('this.#cells.raised(v', 'this.#cells.penalized(v')],
      },
    ]),
  ),
  'a conversion that carries its sum although the admission word has changed': {
    scenario: 'a change beside a decision',
    edits: [
      inConversion('v === counted?.v && load(words, base + TICK) === counted.tick', 'counted !== undefined'),
    ],
  },
  'a conversion that leaves the tick where it carries': {
    scenario: 'a check by an older reading in a converted cell',
    edits: [inConversion('if (isCounted)\n            algorithm.enter(base, reading);', '')],
  },
  'a conversion that another thread does not finish': {
    scenario: 'a key is converted by two threads, to a window that is shorter',
    edits: [
      inConversion(
        'if (isConverting)\n                this.#complete(base, name, this.past.word(base));',
        '',
      ),
    ],
  },
  'a conversion that does not look at CURRENT after its reading': {
    scenario: 'a longer window while a cell is converted for a new key',
    edits: [inConversion('if (this.#views.isOutdated())\n            return true;', '')],
  },
  'a shorter window that remembers nothing': {
    scenario: 'a shorter window, and a longer one',
    edits: [inConversion('isToRemember ? toRemember : NOTHING', 'NOTHING')],
  },
  'a past that ends before the key is used by the longer window': {
    test: 'limiter/policy-windows-log',
    edits: [inPast('this.units(base, nowMs, fromMs)', 'this.units(base, nowMs)')],
  },
  'a past on top of what is carried of it': {
    test: 'limiter/policy-windows-log',
    edits: [inPast('used - this.#carriedIn(base, algorithm, reading)', 'used')],
  },
  'a total below what is carried': {
    test: 'limiter/policy-windows-log',
    edits: [inSummed('(v & COUNT) >= units || (v & STATE) !== LIVE', 'v !== -1')],
  },
  'a bucket that is read before its last charge': {
    test: 'limiter/policy-windows-log',
    edits: [inConversion('Math.max(fromMs, estimates.endMs(tick, nowMs))', 'fromMs')],
  },
  'a bucket that is carried to its last charge': {
    test: 'limiter/policy-windows-log',
    edits: [inConversion('estimates.runsOff ? old.reading.nowMs : chargedMs', 'chargedMs')],
  },
  'a word at rest that is not emptied with its key': {
    test: 'limiter/policy-windows-log',
    edits: [inWordAdjustments('most === Number.MAX_SAFE_INTEGER && isSettled(w)', 'false')],
  },
  'windows of policies that begin by the clock of the machine': {
    test: 'config/aligned-windows',
    edits: [inPolicyPlaces('planFor(own,', 'planFor(rules,')],
  },
  'a policy that counts in the cells of a changed default': {
    test: 'config/limiter',
    edits: [inPolicyPlans('this.#byShape.delete(this.members[0].shape.text);', '')],
  },
  'a cell that a longer window counts by its old one': {
    scenario: 'decisions around a change to a window that is longer',
    edits: [inConversion('nowMs - Math.max(0, lastMs - reading.ticks.windowMs)', 'nowMs')],
  },
  'a cell expired while it is converted': {
    scenario: 'a conversion beside a new key that displaces it',
    edits: [inConversion('if ((name & CONVERTING) !== 0)\n            return false;', '')],
  },
  'a bucket that is given more than it holds': {
    test: 'limiter/window-changes',
    edits: [
      inConversion(
        'Math.min(isCounted ? counted.used : most, MAX_TOTAL)',
        '(isCounted ? counted.used : Math.min(most, MAX_TOTAL))',
      ),
    ],
  },
  'a name compared without its record': {
    scenario: 'a change beside a decision',
    edits: [
      inCells(
        'return read(this.words, this.base(way) + HI) === (hi | this.#record);',
        'return ((read(this.words, this.base(way) + HI) ^ hi) & ~0x7f) === 0;',
      ),
    ],
  },
  'a tick of a newer record taken for one that has rested': {
    scenario: 'a change beside a decision',
    edits: [inCellTime('& CELL_RECORD) !== this.#record)', '& CELL_RECORD) < 0)')],
  },
  'ticks of a new record that begin with those of the old one': {
    scenario: 'a conversion beside a decision',
    edits: [inRecords('shape.shift + 4 * ring + margin', 'shape.shift')],
  },
  'ticks of a new record without a margin': {
    scenario: 'a conversion that is overtaken by another change',
    edits: [inRecords('shape.shift + 4 * ring + margin', 'shape.shift + 4 * ring')],
  },
  'ticks of a new record one ring after those of the old one': {
    scenario: 'a key is converted by two threads, to a window that is as long, coarser',
    edits: [inRecords('shape.shift + 4 * ring + margin', 'shape.shift + ring')],
  },
  'a record that is taken before CURRENT is read': {
    scenario: 'two changes at once',
    edits: [
      inRecords(
        'for (let tries = 0;; tries = again(tries)) {\n        const current = load(words, HEADER.CURRENT);\n        const present',
        `${TAKE}
    for (;;) {
        const current = load(words, HEADER.CURRENT);
        const present`,
      ),
      inRecords(`${TAKE}\n        if`, 'if'),
    ],
  },
  'a new limit that undoes a change of the window': {
    scenario: 'a change beside a new limit',
    edits: [
      inRecords(
        'if (compareExchange(words, HEADER.CURRENT, current, next) === current)\n            return;',
        'write(words, HEADER.CURRENT, next);\n        return;',
      ),
    ],
  },
  'a scan that does not find a cell of another record': {
    scenario: 'a change beside the first decisions of a key',
    edits: [
      inInsertion('|| !this.#table.isOfKey(other, lo, hi))', '|| !this.#table.isNamed(other, lo, hi))'),
    ],
  },
  'no look at CURRENT around a claim': {
    scenario: 'a new key among cells of two records',
    edits: [
      inInsertion('if (this.#isOutdated())\n            return undefined;', ''),
      inInsertion('if (this.#isOutdated()) {', 'if (v < -1 && v > 0) {'),
    ],
  },
  'a claim that does not carry the counts of another record': {
    scenario: 'a new key among cells of two records',
    edits: [
      inInsertion('if (isOther)\n            this.#cells.carryOver(base, payload, this.#reading);', ''),
    ],
  },
  'a charge given back by another record than its own': {
    test: 'limiter/window-changes',
    edits: [inKeyChanges('isOwn ? present : present.conversion?.ownView(base, name)', 'present')],
  },
  'a charge given back by the record before': {
    test: 'limiter/window-changes',
    edits: [inKeyChanges('this.#views.refresh();\n        const { present }', 'const { present }')],
  },
  'a key cleared by another record than its own': {
    scenario: 'a conversion beside the clearing of all keys',
    edits: [inKeyChanges('if (conversion?.isOther(base)) {', 'if (lo > 2 ** 40) {')],
  },
  'CURRENT read before the clock': {
    scenario: 'a change to a longer window while a limiter decides',
    edits: [
      inEngine(
        `this.reading.take();\n        ${ELSE}`,
        `{
            const { limit } = this;
            this.reading.take();
            return this.check(lo, hi, cost, hint, limit);
        }
        ${ELSE}`,
      ),
    ],
  },
  'a decision that goes on with the limit of another record': {
    test: 'algorithms/interrupted-changes',
    edits: [
      inEngine(
        'if (this.arena !== arena)\n                return this.#outdated();', // in the loop
        '',
      ),
    ],
  },
  'a look at a cell that is converted meanwhile': {
    test: 'algorithms/interrupted-changes',
    edits: [
      inViews('if (way === found && !table.isLive(way, lo, hi))\n            return Outcome.OUTDATED;', ''),
    ],
  },
  'the usage of a cell that is converted meanwhile': {
    test: 'algorithms/interrupted-changes',
    edits: [inViews('if (table.isLive(way, lo, hi))\n                    return used;', 'return used;')],
  },
  'a key not looked up again after its conversion by another thread': {
    test: 'algorithms/interrupted-changes',
    edits: [inConversion('return true; // another thread has just converted it', 'continue;')],
  },
}
