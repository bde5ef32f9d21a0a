// Mistakes in decisions by several rules, in groups and in reservations.
import {
  inAttempt,
  inCharges,
  inEngine,
  inGroup,
  inGroupBase,
  inGroupMember,
  inKeyChanges,
  inLimiter,
  inReservation,
  inRulesChanges,
  inRulesDecision,
  inRulesEngine,
  type Mutant,
} from './mutant.js'

const refused = 'two rules: the second refuses, and the first takes its charge back'

export const several: Readonly<Record<string, Mutant>> = {
  'charges that stay after a refusal': {
    scenario: refused,
    edits: [inRulesEngine('this.#takeBack(parts, refusing);', '')],
  },
  'only the last charge taken back': {
    scenario: 'three rules, of which the last refuses',
    edits: [
      inRulesEngine(
        'for (let i = 0; i < count; i++)\n            parts[i] = this.engines',
        'for (let i = Math.max(0, count - 1); i < count; i++)\n            parts[i] = this.engines',
      ),
    ],
  },
  'a charge of the wrong rule taken back': {
    scenario: 'three rules, of which the last refuses',
    edits: [
      inRulesEngine(
        'parts[i] = this.engines[i].takeBack(parts[i]);',
        'parts[i] = this.engines[0].takeBack(parts[i]);',
      ),
    ],
  },
  'rules that have charged charge again after one that did not at once': {
    scenario: refused,
    edits: [inRulesEngine('this.#decideFrom(charged, parts,', 'this.#decideFrom(0, parts,')],
  },
  'charges at once that do not stop at a rule without room': {
    scenario: 'three rules, of which the last refuses',
    edits: [
      inRulesEngine(
        'while (charged < attempts.length && attempts[charged].charges(way, lo, hi, cost))\n            charged++;',
        'for (; charged < attempts.length; charged++)\n            attempts[charged].charges(way, lo, hi, cost);',
      ),
    ],
  },
  'a charge at once by a limit of before': {
    test: 'engines/rules-read-late',
    edits: [inAttempt('this.#limit = this.#rule.readLimit();', 'this.#limit ||= this.#rule.readLimit();')],
  },
  'a limit that is read between the charges of two rules': {
    test: 'limiter/bad-rules',
    edits: [
      inRulesEngine('attempt.begin();', ''),
      inAttempt('const limit = this.#limit;', 'this.begin();\n        const limit = this.#limit;'),
    ],
  },
  'a charge kept with the tick of another rule': {
    test: 'engines/rules-read-late',
    edits: [inRulesDecision('way, tick, 0, adm)', 'way, first.tick, 0, adm)')],
  },
  'a decision that does not stop after a refusal': {
    scenario: 'two rules: three admit on the last units',
    edits: [inRulesEngine('if (!part.allowed)\n                    break;', '')],
  },
  'a charge taken back twice': {
    scenario: refused,
    edits: [
      inEngine(
        'this.changes.takeBack(admitted);',
        '{\n this.changes.takeBack(admitted);\n this.changes.takeBack(admitted);\n }',
      ),
    ],
  },
  'a charge taken back from the tick of the reading': {
    scenario: 'two rules: a rollover before a charge is taken back',
    edits: [
      inKeyChanges(
        'this.takeBackFrom(decision.way, decision, units)',
        'this.takeBackFrom(decision.way, { ...decision, receipt: decision.receipt, tick: this.#views.reading.tick }, units)',
      ),
    ],
  },
  'a charge taken back by its units alone': {
    scenario: 'two rules: a refund by key before a charge is taken back',
    edits: [inCharges('(b & (LAP | REFUNDS)) !== expected', '(b & LAP) !== ring.lap')],
  },
  'a reservation settled by its units alone': {
    scenario: 'a reservation and a refund by key',
    edits: [inCharges('(b & (LAP | REFUNDS)) !== expected', '(b & LAP) !== ring.lap')],
  },
  'a reservation settled without a generation': {
    scenario: 'a reservation and refunds by key that turn a mark',
    edits: [inCharges('(!isMarked || marks.beginGiveBack(base, stamp))', '(!isMarked || stamp >= 0)')],
  },
  'a part of a charge given back as a whole': {
    scenario: 'a reservation settled by less while another thread decides',
    edits: [inLimiter('engine.giveBack(decision, cost - actualCost)', 'engine.giveBack(decision)')],
  },
  'a part of a charge of two rules given back as a whole': {
    scenario: 'two rules: a reservation settled by less',
    edits: [inRulesEngine('changes.takeBack(part, units)', 'changes.takeBack(part)')],
  },
  'members that keep the charges of a refusal': {
    scenario: 'groups with their members in opposite orders',
    edits: [inGroup('this.undo(requests, parts);\n        // The member', '// The member')],
  },
  'a charge taken back in the wrong member': {
    scenario: 'a group: three members of which the last refuses',
    edits: [inGroupBase('this.own[i].undo(part, requests[i])', 'this.own[0].undo(part, requests[i])')],
  },
  'a group that does not stop after a refusal': {
    scenario: 'groups in opposite orders, and a member alone',
    edits: [inGroup('if (!part.allowed)\n                    break;', '')],
  },
  'a member that keeps its charge': {
    scenario: 'groups with their members in opposite orders',
    edits: [inGroupMember('engines[i].changes.takeBack(charge);', '')],
  },
  'a decision of several rules given back in the first rule only': {
    test: 'conformance/several-rules-changes',
    edits: [
      inRulesEngine(
        'most = Math.max(most, this.engines[i].changes.takeBack(part, units));',
        'if (i === 0)\n                most = Math.max(most, this.engines[i].changes.takeBack(part, units));',
      ),
    ],
  },
  'charges that stay when the clock fails between two rules': {
    test: 'limiter/bad-rules',
    edits: [inRulesEngine('this.#takeBack(parts, decided);\n            throw error;', 'throw error;')],
  },
  'a change of a key in the first rule only': {
    test: 'conformance/several-rules-changes',
    edits: [
      inRulesChanges('return this.#engines.map(change);', 'return this.#engines.slice(0, 1).map(change);'),
    ],
  },
  'all keys cleared in the first rule only': {
    test: 'engines/clear-all-threads',
    edits: [inRulesChanges('this.#engines.toReversed()', 'this.#engines.slice(0, 1)')],
  },
  'a reservation settled twice': {
    test: 'conformance/per-call',
    edits: [inReservation('this.#isSettled = true;', '')],
  },
  'a larger cost that is not charged': {
    test: 'conformance/per-call',
    edits: [
      inLimiter(
        'return engine.changes.chargeMore(lo, hi, cost, actualCost, shadowedRules(decision));',
        'return actualCost - cost;',
      ),
    ],
  },
  'a larger cost charged in a rule that refused the reservation in shadow mode': {
    test: 'conformance/several-refusals',
    edits: [inRulesChanges('shadowed & (1 << i)', '0')],
  },
  'a larger cost charged as a whole': {
    test: 'conformance/per-call',
    edits: [inKeyChanges('const more = actualCost - cost;', 'const more = actualCost;')],
  },
  'a reservation that gives back its actual cost': {
    test: 'conformance/per-call',
    edits: [
      inLimiter('engine.giveBack(decision, cost - actualCost)', 'engine.giveBack(decision, actualCost)'),
    ],
  },
}
