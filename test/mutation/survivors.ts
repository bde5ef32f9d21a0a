export interface Reason {
  /** Why nothing can see these, or why what sees them is not part of the run. */
  readonly why: string
  /** By {@link Mutation.name}. */
  readonly mutations: readonly string[]
}

/** Mutations that nothing notices, each with its reason. */
export const survivors: readonly Reason[] = [
  {
    why: 'a name for one of several answers, compared with nothing but itself: any number does that is not another’s',
    mutations: [
      'algorithms/ring.js outside: const FAR_AHEAD = «2 → 3»;',
      'algorithms/sliding-window.js outside: export const ADMITTED = «1 → 2»;',
    ],
  },
  {
    why: 'a value to begin with, written before anybody reads it',
    mutations: ['algorithms/sliding-window.js chargedRefunds: chargedRefunds = «0 → 1»;'],
  },
  {
    why: 'leaves a loop without an end, and so the function without a result: the compiler refuses it (npm run types)',
    mutations: [
      'algorithms/adjustments.js penalize: «continue; → break;»',
      'algorithms/adjustments.js block: «continue; → break;»',
      'algorithms/ring.js advance: «continue; → break;»',
    ],
  },
  {
    why: 'a short cut: what follows comes to the same by a longer way, and writes nothing',
    mutations: [
      // Nothing is left to take: each further bucket is read and passed over.
      'algorithms/adjustments.js refund: for (let back = ring.size - 1; back >= 0 && «left > 0 → true»; back--) {',
      // The bucket is empty now, or nothing left to take: read once more, then left.
      'algorithms/adjustments.js refund: «break; → continue;» (2)',
      // As many ticks after the cell’s as the goal is after it: the goal.
      'algorithms/ring.js advance: const next = «hop === behind → false» ? goal : this.after(tick, hop);',
      // Nearly the modulus ahead is far beyond what stands; where NEWEST allows it, the clock is read once more.
      'algorithms/ring.js #sideOf: if («behind <= this.#modulus / 2 → false»)',
      // The loop below goes from p to end.
      'algorithms/ring.js #broom: if («p > end → false»)',
    ],
  },
  {
    why:
      'between the two lookups the way was not the key’s: at that moment there was nothing to refund, and saying so is ' +
      'as true as refunding what has come since',
    mutations: ['algorithms/adjustments.js refund: if («newest === undefined → false»)'],
  },
  {
    why:
      'the bucket is at its fullest by then and refuses every limit; only total is higher than it need be, until it is ' +
      'summed anew',
    mutations: [
      'algorithms/adjustments.js penalize: if (charged === LATE || «charged === OVERFLOWN → false»)',
    ],
  },
  {
    why:
      'an epoch one less is a new one as well; the word comes round only where as many changes go forward and the total ' +
      'is the same again, which no schedule of so few operations brings about',
    mutations: [
      'algorithms/adjustments.js penalize: if (compareExchange(words, base + ADM, v, ((v & ~COUNT) «+ → -» ONE_EPOCH) | next) === v)',
    ],
  },
  {
    why: 'NEWEST a sixteenth of a second later than it need be: it is that coarse, and a tick stands still no longer than is documented for it',
    mutations: [
      'algorithms/ring.js #raiseNewest: const since = Math.«floor → ceil»(((reading.nowMs - this.#originMs) * PER_SECOND) / 1000);',
    ],
  },
  {
    why:
      'an empty bucket is marked as swept: a compare-exchange more, and in the one tick whose lap comes round a charge ' +
      'that is not admitted may stay for a window, as in any that was swept',
    mutations: [
      'algorithms/ring.js #broom: if («(b & COUNT) === 0 → false» || (b & LAP) === (i <= slot ? this.#lap : lapBefore))',
    ],
  },
  {
    why:
      'any bound does from 2^19 to the modulus less 2^19: a move of more than 2^19 that ends in the same step of 2^19 ' +
      'has gone nearly all round',
    mutations: ['algorithms/sliding-window.js #advance: const passed = moved >= «2 → 3» ** STEP_BITS;'],
  },
  {
    why: 'a new epoch oftener than is needed: a compare-exchange more whenever a tick moves',
    mutations: [
      'algorithms/sliding-window.js #advance: if (passed || (moved «> → >=» 0 && tick >>> STEP_BITS !== reading.tick >>> STEP_BITS))',
      'algorithms/sliding-window.js #advance: if (passed || (moved > 0 && tick «>>> → >>» STEP_BITS !== reading.tick >>> STEP_BITS))',
      'algorithms/sliding-window.js #advance: if («passed || (moved > 0 && tick >>> STEP_BITS !== reading.tick >>> STEP_BITS) → true»)',
    ],
  },
  {
    why:
      'a charge that came a whole ring late, committed without its bucket: the commit says that nothing was admitted or ' +
      'summed since its word was read, and its tick has left every window; only total is higher until it is summed anew',
    mutations: ['algorithms/sliding-window.js decide: if («charged === LATE → false»)'],
  },
]
