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
      // The word is read again: no block any more.
      'algorithms/sliding-window.js resum: return «true → false»;',
      // The home is looked at twice.
      'memory/insertion.js #unused: for (let i = 0; i «< → <=» WAYS_PER_SET; i++) {',
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
      'algorithms/ring.js #broom: if («(b & COUNT) === 0 → false» || (b & LAP) === this.#lapOf(i, to))',
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
  {
    why:
      'the second commit finds another word and fails: the charge is taken out and made anew, as after any change (it could ' +
      'write only to a bucket that three refunds have marked and that is the very same number)',
    mutations: [
      'algorithms/sliding-window.js #commitAgain: const found = compareExchange(this.words, base «+ → -» ADM, x, (x + ONE_EPOCH + cost) | 0);',
    ],
  },
  {
    why:
      'an answer that only a bucket of the last lap with three refunds and that very count looks like: the decision would ' +
      'be refused',
    mutations: ['algorithms/sliding-window.js outside: export const OVERFLOWN = -(2 «** → *» 31);'],
  },
  {
    why:
      'which of the free ways a new key gets: wherever none is found so, the search for a reusable one finds any that is ' +
      'free. How full tables become is held by test/memory/table.test.ts, which is too long for this run',
    mutations: [
      'memory/insertion.js choose: const home = lo & (WAYS_PER_SET - «1 → 2»);',
      'memory/insertion.js choose: if («way < 0 → true»)',
      'memory/insertion.js #unusedIn: let unused = «0 → 1»;',
      'memory/insertion.js #unusedIn: if (read(this.#words, NAMES_AT + way) === «0 → 1»)',
      'memory/insertion.js #unused: const nameless = read(this.#words, NAMES_AT «+ → -» way) === 0;',
      'memory/insertion.js #unused: if (!nameless || load(this.#words, this.#table.base(way) + ADM) !== «0 → 1»)',
      'memory/insertion.js #unused: «return way; → »',
      'memory/insertion.js #unused: if («!nameless || load(this.#words, this.#table.base(way) + ADM) !== 0 → true»)',
    ],
  },
  {
    why: 'never come to: buckets that have left the window are not asked about',
    mutations: ['algorithms/forecast.js #counting: return «0 → 1»;'],
  },
  {
    why:
      'a way is looked for by the decision’s own reading of the clock: one that has expired since is not seen yet, and the ' +
      'claim reads the clock again in any case',
    mutations: ['memory/insertion.js #reusable: «this.#reading.take(); → »'],
  },
]

/** Mutations that nothing notices so far, and nobody has looked at yet: each wants a test or a reason. */
export const notLookedAtYet: readonly string[] = [
  'memory/insertion.js #reusable: if (empty[set].way < «0 → 1» || state === FREE)',
  "memory/insertion.js #reusable: return this.#onFull === 'evict' ? this.#choose(least) : -«1 → 2»;",
  'memory/insertion.js #claim: «this.#reading.take(); → »',
  "memory/insertion.js #claim: if («stillCounts && this.#onFull !== 'evict' → false»)",
  'memory/insertion.js #claim: const mine = ((v «+ → -» ONE_EPOCH) & EPOCH) | CLAIMED | total;',
  'memory/insertion.js #claim: add(words, HEADER.CLAIMING, «-1 → 1»);',
  'memory/insertion.js #claim: if («v === 0 → true» && read(words, NAMES_AT + way) === 0)',
  'memory/insertion.js #claim: write(words, base «+ → -» HI, hi);',
  'memory/insertion.js #claim: «add(words, HEADER.CLAIMING, -1); → »',
  'memory/insertion.js #isOnly: return «false → true»;',
  'memory/layout.js outside: export const MAGIC = «0x6d696c6c → 1835625581»;',
  'memory/layout.js outside: DENIED: «34 → 35»,',
  'memory/layout.js outside: CLAIMING: «42 → 43»,',
  'memory/layout.js outside: export const MAX_TOTAL = COUNT - «1 → 0»;',
  'memory/layout.js outside: export const MOST_REFUNDS = «3 → 4»;',
  'memory/layout.js setsFor: return Math.max(«2 → 1», Math.ceil(maxKeys / FILL / WAYS_PER_SET));',
  'memory/layout.js isShape: return buckets >= 1 && buckets <= MAX_BUCKETS && sets >= 2 && windowMs «>= → >» 1 && Number.isFinite(windowMs);',
  'memory/table.js secondSet: const step = WAYS_PER_SET * (1 + Math.floor((hi >>> 0) «* → /» (this.#sets - 1) * 2 ** -32));',
  'memory/table.js isNamed: return «read(this.#words, NAMES_AT + way) === lo → true» && read(this.#words, this.base(way) + HI) === hi;',
  'memory/table.js isNamed: return read(this.#words, NAMES_AT + way) === lo && «read(this.#words, this.base(way) + HI) === hi → true»;',
]
