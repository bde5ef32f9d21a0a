// Mistakes in groups.
import { inGroups, type Mutant } from './mutant.js'

export const grouping: Readonly<Record<string, Mutant>> = {
  'a refused group that keeps earlier charges': {
    test: 'limiter/group-log',
    edits: [inGroups.inline('this.undo(requests, parts);\n        // The member', '// The member')],
  },
  'a failed group that keeps earlier charges': {
    test: 'limiter/bad-group',
    edits: [inGroups.inline('this.undo(requests, parts);\n            throw error;', 'throw error;')],
  },
  'a charge that is taken back by a new reading of the clock': {
    test: 'limiter/bad-group',
    edits: [inGroups.member('reading.set(countedOf(charge).at);', 'reading.take();')],
  },
  'a charge that is taken back but stays in the statistics': {
    test: 'limiter/group-threads',
    edits: [inGroups.member('this.#engine.uncount(decision, near);', '')],
  },
  'a cost above the limit of a later member that is charged for a moment': {
    test: 'conformance/groups',
    edits: [inGroups.inline('if (below >= 0) {', 'if (below > requests.length) {')],
  },
  'a wait that charges before all members have room': {
    test: 'limiter/group-pool',
    edits: [
      inGroups.base(
        'return peeked.allowed ? this.decide(requests) : peeked;',
        'return this.decide(requests);',
      ),
    ],
  },
  'a charge that is taken back without waking the calls that it refused': {
    test: 'limiter/group-pool',
    edits: [inGroups.async('if (admitted.length > 0)\n            this.wake(requests);', '')],
  },
  'a queue of a group that only its first member wakes': {
    test: 'limiter/group-wait',
    edits: [
      inGroups.queues(
        'for (const { waiters, lo, hi } of keys)\n            waiters.join',
        'for (const { waiters, lo, hi } of keys.slice(0, 1))\n            waiters.join',
      ),
    ],
  },
  'a reservation that is settled twice in one member after an error': {
    test: 'limiter/bad-group',
    edits: [inGroups.base('if (!changes.has(i))\n', '')],
  },
}
