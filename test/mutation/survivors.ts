import { survivorsInSums } from './survivors-in-sums.js'

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
      'algorithms/sliding-window.js outside: export const UNDECIDED = «-2 → 2»;',
      'algorithms/sliding-window.js outside: export const UNDECIDED = -«2 → 3»;',
      'algorithms/sliding-window.js outside: export const UNDECIDED = -«2 → 1»;',
      'algorithms/sliding-window.js outside: export const GONE = -«1 → 2»;',
      'algorithms/sliding-window.js outside: export const ADMITTED = «1 → 2»;',
    ],
  },
  {
    why: 'a value to begin with, written before anybody reads it',
    mutations: [
      'algorithms/sliding-window.js chargedTick: chargedTick = «0 → 1»;',
      'algorithms/sliding-window.js chargedRefunds: chargedRefunds = «0 → 1»;',
      'memory/insertion.js #chosen: #chosen = «0 → 1»;',
      'memory/hash.js lo: lo = «0 → 1»;',
      'memory/hash.js hi: hi = «0 → 1»;',
      'memory/hash.js hash: let word = «0 → 1»;',
    ],
  },
  {
    why: 'leaves a loop without an end, and so the function without a result: the compiler refuses it (npm run types)',
    mutations: [
      'algorithms/adjustments.js penalize: «continue; → break;»',
      'algorithms/adjustments.js penalize: «continue; → break;» (2)',
      'algorithms/adjustments.js block: «continue; → break;»',
      'algorithms/sliding-window.js decide: «continue; → break;» (2)',
    ],
  },
  {
    why: 'a short cut: what follows comes to the same by a longer way, and writes nothing',
    mutations: [
      // The bucket is empty now, or nothing left to take: read once more, then left.
      'algorithms/adjustments.js refund: «break; → »',
      'algorithms/adjustments.js refund: «break; → continue;» (2)',
      // Slot and lap are worked out once more.
      'algorithms/ring.js slot: if («tick !== this.#locatedTick → true») {',
      // A move by exactly the reach: the reach, and no further laps.
      'algorithms/ring.js advance: const hop = behind «<= → <» reach ? behind : reach + all * Math.floor((behind - reach) / all);',
      // The clock is read once more, whatever the side.
      'algorithms/ring.js advance: if («side === FAR_AHEAD → true» && !isFresh) {',
      // The compare-exchange of the next round fails, and says where the tick is.
      'algorithms/ring.js advance: «tick = next; → »',
      // As many ticks after the cell’s as the goal is after it: the goal.
      'algorithms/ring.js advance: const next = «hop === behind → false» ? goal : this.after(tick, hop);',
      // Nearly the modulus ahead is far beyond what stands; where NEWEST allows it, the clock is read once more.
      'algorithms/ring.js #sideOf: if («behind <= this.#modulus / 2 → false»)',
      'algorithms/ring.js #sideOf: if (behind «<= → <» this.#modulus / 2)',
      'algorithms/ring.js #sideOf: if (behind <= this.#modulus / «2 → 3»)',
      // The same number is put in its place; or the next compare-exchange finds what this one has put there.
      'algorithms/ring.js #raiseNewest: for (let seen = read(this.#words, HEADER.NEWEST); seen >>> 0 «< → <=» newest;) {',
      'algorithms/ring.js #raiseNewest: if («found === seen → false»)',
      // It is at the reading’s: moved by nothing.
      'algorithms/sliding-window.js enter: if («tick !== reading.tick → true»)',
      // The bucket is full to the last unit by it, and the long way charges it so.
      'algorithms/sliding-window.js attempt: if ((b & LAP) !== ring.lap || (b & COUNT) + cost «> → >=» COUNT)',
      // One word more is read, and put where nothing is, or where the next set’s first comes.
      'memory/insertion.js #see: for (let i = 0; i «< → <=» WAYS_PER_SET; i++)',
      // Every place of the key is looked at, one by one, and each is asked whose it is.
      'memory/table.js findLive: if («found < 0 → false» || this.isLive(found, lo, hi))',
      'memory/table.js findLive: if («found < 0 || this.isLive(found, lo, hi) → false»)',
      'memory/table.js findLive: if (found < 0 || «this.isLive(found, lo, hi) → false»)',
      'memory/table.js findLive: if («this.isNamed(way, lo, hi) → true» && this.isLive(way, lo, hi))',
      // The name is looked at whole, later on.
      'memory/insertion.js #isOnly: if (other === way || «read(words, NAMES_AT + other) !== lo → false»)',
      // All places of a set are looked at, from whichever on.
      'memory/table.js #scan: const home = lo «& → |» (WAYS_PER_SET - 1);',
      'memory/table.js #scan: const home = lo & (WAYS_PER_SET «- → +» 1);',
      'memory/table.js #scan: const home = lo & (WAYS_PER_SET - «1 → 2»);',
      'memory/table.js #scan: const home = lo & (WAYS_PER_SET - «1 → 0»);',
      // The home is looked at twice.
      'memory/table.js #scan: for (let i = 0; i «< → <=» WAYS_PER_SET; i++) {',
      // Of a bucket that must leave whole, and more with it: the next one decides.
      'algorithms/forecast.js #leaves: sixteenths = count > most ? Math.min(«16 → 17», Math.ceil(16 - (16 * most) / count)) : 1;',
      'memory/table.js #scan: const place = (home «+ → -» i) & (WAYS_PER_SET - 1);',
      // It is FREE by now, and left for that.
      'memory/insertion.js #isOnly: «break; → continue;» (2)',
      // The difference that is taken out is put back by the other.
      'algorithms/sliding-window.js blockedMs: const whole = Math.«floor → ceil»(since);',
      // It would be full by it: taken out, and decided anew.
      'algorithms/sliding-window.js #commitAgain: while (this.isOf(x, way, lo, hi) && read(this.words, base + TICK) === e && (x & COUNT) + cost «<= → <» limit) {',
      // The word is read again: no block any more.
      'algorithms/sliding-window.js resum: return «true → false»;',
      // The home is looked at twice.
      'memory/insertion.js #unused: for (let i = 0; i «< → <=» WAYS_PER_SET; i++) {',
      // The loop below goes from p to end.
      'range-sum/plain.js sweep: if («p > end → false»)',
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
      'a charge that came a whole ring late: the tick is not e any more, and its bucket bears another lap than that of e, ' +
      'so nothing is committed or taken out, and the penalty begins anew',
    mutations: [
      'algorithms/adjustments.js penalize: if («charged === LATE → false»)',
      'algorithms/adjustments.js penalize: if («charged === LATE → false» || charged === OVERFLOWN)',
    ],
  },
  {
    why:
      'the tick has moved on, and the penalty stands in the one where it was charged: a sum made in between may have ' +
      'counted it, so that total is higher than it need be, until it is summed anew',
    mutations: [
      'algorithms/adjustments.js penalize: if (!this.#window.isOf(v, way, lo, hi) || «read(words, base + TICK) !== e → false»)',
    ],
  },
  {
    why:
      'how often a slot is broomed is a choice: any number of laps does of which three are not more than the 256 after ' +
      'which a lap comes round',
    mutations: ['range-sum/range-sum.js outside: export const BROOM_LAPS = «64 → 65»;'],
  },
  {
    why:
      'NEWEST a sixteenth of a second later or sooner than it need be: it is that coarse, one of the two is for rounding, and ' +
      'a tick stands still no longer than is documented for it',
    mutations: [
      'algorithms/ring.js #raiseNewest: const since = Math.«floor → ceil»(((reading.nowMs - this.#originMs) * PER_SECOND) / 1000);',
      'algorithms/ring.js #sideOf: const newest = (word + «2 → 3») * (1000 / PER_SECOND);',
      'algorithms/ring.js #sideOf: const newest = (word + «2 → 1») * (1000 / PER_SECOND);',
      'algorithms/ring.js #sideOf: const wasRead = (reading.absoluteTick + ahead) * this.#granuleMs - this.#originMs «< → <=» newest;',
    ],
  },
  {
    why:
      'any bound does from 2^19 to the modulus less 2^19: a move of more than 2^19 that ends in the same step of 2^19 ' +
      'has gone nearly all round',
    mutations: [
      'algorithms/sliding-window.js #advance: const passed = moved >= «2 → 3» ** STEP_BITS;',
      'algorithms/sliding-window.js #advance: const passed = moved «>= → >» 2 ** STEP_BITS;',
    ],
  },
  {
    why:
      'a new epoch oftener than is needed, where a tick stands, is beyond 2^31 or moves by 38 and more: a compare-exchange ' +
      'more, and a sum where a note would have done',
    mutations: [
      'algorithms/ring.js advance: let moved = «0 → 1»;',
      'algorithms/sliding-window.js #advance: const passed = moved >= 2 «** → *» STEP_BITS;',
      'algorithms/sliding-window.js #advance: if (passed || («moved > 0 → true» && tick >>> STEP_BITS !== reading.tick >>> STEP_BITS))',
      'algorithms/sliding-window.js #advance: if (passed || (moved > 0 && tick >>> STEP_BITS !== reading.tick «>>> → >>» STEP_BITS))',
      'algorithms/sliding-window.js #advance: if (passed || (moved «> → >=» 0 && tick >>> STEP_BITS !== reading.tick >>> STEP_BITS))',
      'algorithms/sliding-window.js #advance: if (passed || (moved > 0 && tick «>>> → >>» STEP_BITS !== reading.tick >>> STEP_BITS))',
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
    mutations: ['range-sum/range-sum.js outside: export const OVERFLOWN = -(2 «** → *» 31);'],
  },
  {
    why:
      'from which load on a new key is put where there is more room is a choice: one place earlier, as by the mutation, ' +
      'one key of fifty more is found in its first set',
    mutations: ['memory/insertion.js #unusedIn: let unused = «0 → 1»;'],
  },
  {
    why:
      'a way is looked for by the decision’s own reading of the clock: one that has expired since is not seen yet, and the ' +
      'claim reads the clock again in any case',
    mutations: ['memory/insertion.js #reusable: «this.#reading.take(); → »'],
  },
  {
    why: 'half as many ends of a note: AS_OF tells 2^19 ticks apart, so one at each multiple of that does, too, if only just',
    mutations: ['algorithms/sliding-window.js outside: const STEP_BITS = «18 → 19»;'],
  },
  {
    why:
      'read for its order alone: the processors that these runs are on keep reads in order by themselves, and so does the ' +
      'explorer',
    mutations: [
      'algorithms/ring.js #sideOf: «load(this.#words, base + TICK); → »',
      'algorithms/ring.js #sideOf: load(this.#words, base «+ → -» TICK);',
    ],
  },
  {
    why: 'HI is the first word of a way: its offset is 0',
    mutations: [
      'algorithms/sliding-window.js isOf: return read(this.words, this.base(way) «+ → -» HI) === hi;',
      'memory/insertion.js #claim: write(words, base «+ → -» HI, hi);',
      'memory/table.js isNamed: return read(this.#words, NAMES_AT + way) === lo && read(this.#words, this.base(way) «+ → -» HI) === hi;',
      'memory/table.js #scan: if (read(words, names + place) === lo && read(words, this.base(set + place) «+ → -» HI) === hi)',
    ],
  },
  {
    why:
      'in one order of reads the second look finds nothing new, which is there for readers and compilers that keep none: ' +
      'test/mutants puts the first one before the admission word, and then both halves of it are noticed',
    mutations: ['algorithms/sliding-window.js attempt: if («this.#stands(v, way, lo, hi, e) → true») {'],
  },
  {
    why:
      'looked at in choosing, too, and test/mutants takes both looks away: nothing shows that the second is ever needed by ' +
      'itself',
    mutations: [
      'memory/insertion.js #claim: if («isBlocked && !this.#givesWay → false»)',
      'memory/insertion.js #claim: const stillCounts = wasLive && (total > 0 || «!this.#cells.isPast(base, tick, this.#reading) → false»);',
    ],
  },
  {
    why: 'AS_OF tells fewer ticks apart by it, but not fewer than the 2^18 after which a note ends in any case',
    mutations: [
      'algorithms/sliding-window.js #noteOf: return (v & EPOCH) | NOTED | ((«this.#smooth → true» ? (e << 4) | sixteenth : e) & TIME);',
      'algorithms/sliding-window.js #noteOf: return (v & EPOCH) | NOTED | ((this.#smooth ? (e << «4 → 5») | sixteenth : e) & TIME);',
    ],
  },
  {
    why: 'a way on its way to another key gets a new epoch: its thread fails to promote it and takes it, or another, anew',
    mutations: ['algorithms/sliding-window.js stale: if («(v & STATE) !== LIVE → false»)'],
  },
  {
    why:
      'an epoch one less is a new one, too: the word comes round only where as many changes go forward meanwhile, and that ' +
      'takes a third thread in the middle of the second',
    mutations: [
      'algorithms/sliding-window.js #commitAgain: const found = compareExchange(this.words, base + ADM, x, (x «+ → -» ONE_EPOCH + cost) | 0);',
    ],
  },
  {
    why: 'longer than is needed, and the rest of it never looked at',
    mutations: ['memory/insertion.js #seen: #seen = new Int32Array(«2 → 3» * WAYS_PER_SET);'],
  },
  {
    why:
      'the way was given up: its tick is brought up to the clock, which any thread may do, and the promotion that follows ' +
      'fails as it is FREE',
    mutations: ['memory/insertion.js #isOnly: return «false → true»;'],
  },
  {
    why: 'any number below 0 says that there is none',
    mutations: [
      'memory/insertion.js #unused: return -«1 → 2»;',
      'memory/insertion.js #reusable: let named = -«1 → 2»;',
      'memory/insertion.js #reusable: let least = -«1 → 2»;',
      'memory/insertion.js #reusable: let best = -«1 → 2»;',
      'memory/insertion.js #reusable: let empty = -«1 → 2»;',
    ],
  },
  {
    why: 'a way that was given up and whose epoch has come round to 0 is taken for unused: it is FREE, and keeps its tick',
    mutations: [
      'memory/insertion.js #unused: if («!nameless → false» || load(this.#words, this.#table.base(way) + ADM) !== 0)',
    ],
  },
  {
    why: 'one more in each of the two sets, which are compared with each other: where there is none, none is chosen still',
    mutations: ['memory/insertion.js #reusable: let empties = «0 → 1»;'],
  },
  {
    why: 'which of those that used least, where several did: any will do',
    mutations: ['memory/insertion.js #reusable: else if (total «< → <=» leastTotal || least < 0) {'],
  },
  {
    why: 'places more than the two sets have, where no key of theirs can be',
    mutations: [
      'memory/insertion.js #isOnly: for (let i = 0; i «< → <=» 2 * WAYS_PER_SET; i++) {',
      'memory/insertion.js #isOnly: for (let i = 0; i < «2 → 3» * WAYS_PER_SET; i++) {',
    ],
  },
  {
    why: 'the sign comes in at the top, and only the two lowest bits are looked at',
    mutations: ['memory/layout.js outside: export const refundsOf = (bucket) => (bucket «>>> → >>» 22) & 3;'],
  },
  {
    why:
      'where the cell’s tick is ahead of the reading, its oldest granule counts in part instead of whole: it is the one that ' +
      'the smooth edge does not promise in any case',
    mutations: [
      'algorithms/sliding-window.js sixteenthOf: return this.#smooth && «e === reading.tick → true» ? reading.sixteenth : 0;',
    ],
  },
  {
    why: 'arenas of 8 GiB: what cannot be allocated is refused by the same error, and no test takes so much memory',
    mutations: [
      'memory/arena.js outside: export const MAX_WORDS = «2 → 3» ** 31 - 1;',
      'memory/arena.js outside: export const MAX_WORDS = 2 ** «31 → 32» - 1;',
      'memory/arena.js outside: export const MAX_WORDS = 2 ** 31 «- → +» 1;',
      'memory/arena.js outside: export const MAX_WORDS = 2 ** 31 - «1 → 2»;',
      'memory/arena.js outside: export const MAX_WORDS = 2 ** 31 - «1 → 0»;',
      'memory/arena.js shapeOf: if («shape.words > MAX_WORDS → false»)',
      'memory/arena.js shapeOf: if (shape.words «> → >=» MAX_WORDS)',
    ],
  },
  {
    why:
      'a view of 21 doubles in place of 32: enough for an arena in memory; that of a file has its time behind them, and its tests, ' +
      'which need the addon, are not part of this run',
    mutations: ['memory/arena.js headerDoubles: return new Float64Array(buffer, 0, HEADER_WORDS / «2 → 3»);'],
  },
  {
    why: 'a hint to begin with: whatever way it names is looked at before it is believed',
    mutations: [
      'memory/keys.js way: way = «-1 → 1»;',
      'memory/keys.js way: way = -«1 → 2»;',
      'memory/keys.js way: way = -«1 → 0»;',
    ],
  },
  {
    why: 'whether any bit above the eighth is set is all that it is asked',
    mutations: ['memory/hash.js hash: let wide = «0 → 1»;'],
  },
  {
    why: 'beyond its end a string has NaN, of which a bitwise operation makes 0',
    mutations: ['memory/hash.js hash: for (let i = whole; i «< → <=» length; i++) {'],
  },
  {
    why: 'by 16 times a multiple of 4 more, and shifts count modulo 32',
    mutations: ['memory/hash.js hash: word |= c << (8 * (i «- → +» whole));'],
  },
  ...survivorsInSums,
]
