// Mistakes in waking pending `wait` calls.
import { inWaitQueue, inWaitQueues, inWordWatch, type Mutant } from './mutant.js'

export const waiting: Readonly<Record<string, Mutant>> = {
  'a refund that wakes every queue': {
    test: 'limiter/wait-many',
    edits: [inWaitQueues('this.#queues.get(nameOf(lo, hi))?.wake();', 'this.#beginSweep();')],
  },
  'all queues woken in one turn': {
    test: 'limiter/wait-many',
    edits: [inWaitQueues('const end = this.#swept + QUEUES_PER_TURN;', 'const end = this.#sweep.length;')],
  },
  'a change during a sweep that is forgotten': {
    test: 'limiter/wait-many',
    edits: [
      inWaitQueues('this.#hasChangedAgain = this.#sweep.length > 0;', 'if (this.#sweep.length > 0) return;'),
    ],
  },
  'a wake-up forgotten while the reply is pending': {
    test: 'engines/wait-queues',
    edits: [inWaitQueue('else if (this.#wakes === wakes) {', 'else {')],
  },
  'an error passed to the next call in the queue': {
    test: 'engines/wait-queues',
    edits: [inWaitQueue('if (this.#first !== first)\n                    continue;', '')],
  },
  'an aborted first call that leaves the next one asleep': {
    test: 'limiter/wait-ends',
    edits: [inWaitQueue('if (isFirst)\n', 'if (!isFirst)\n')],
  },
  'no wait for updates': {
    test: 'limiter/wait-many',
    edits: [inWaitQueues('watch.add(this.#wakeAll);', 'watch.delete(this.#wakeAll);')],
  },
  'a watch kept after close': {
    test: 'limiter/wait-many',
    edits: [inWaitQueues('watch.end();', 'watch.check();')],
  },
  'a wait for each listener': {
    test: 'core/word-watch',
    edits: [
      inWordWatch('if (pending.isArmed || pending.watch === undefined)', 'if (pending.watch === undefined)'),
    ],
  },
  'a counter read after the listeners are called': {
    test: 'core/word-watch',
    edits: [
      inWordWatch(
        'for (const listener of this.#listeners)\n            listener();',
        'for (const listener of this.#listeners)\n            listener();\n        this.#last = Atomics.load(this.#words, this.#index);',
      ),
    ],
  },
  'listeners called for an unchanged counter': {
    test: 'core/word-watch',
    edits: [inWordWatch('if (this.#last === before)\n            return;', '')],
  },
}
