// The words of the model of `log.mjs`, and what a scenario says about them.
//
// ADM is `epoch | state | total`, AS_OF is the note: 0, or `epoch | until`. An entry is `tick | counts | version`; its
// tick wraps at S.wrap, the cell's does not. The clock counts S.sub parts of a tick.

/** The scenario, and the mistake. */
export let S
export let bad
export function setUp(scenario, mistake) {
  S = scenario
  bad = mistake
}
export const [CLOCK, NAME, ADM, TICK, AS_OF, REFUNDS, HINT, ENTRIES] = [0, 1, 2, 3, 4, 5, 6, 7]
export const [CLAIMED, LIVE] = [1, 3]
const MAX_TOTAL = 32
const MOST_TICK = 256

export const adm = (epoch, state, total) => ((epoch % S.epochs) * 4 + state) * MAX_TOTAL + total
export const epochOf = (v) => Math.floor(v / (4 * MAX_TOTAL))
export const stateOf = (v) => Math.floor(v / MAX_TOTAL) & 3
export const totalOf = (v) => v % MAX_TOTAL
export const renewed = (v, total = totalOf(v)) => adm(epochOf(v) + 1, stateOf(v), total)

export const noteOf = (v, until) => 1 + epochOf(v) * MOST_TICK + until
export const holds = (note, v, e) =>
  note > 0 && Math.floor((note - 1) / MOST_TICK) === epochOf(v) && e < (note - 1) % MOST_TICK

const entry = (tick, counts, version) => ((tick % S.wrap) * 2 + counts) * S.versions + (version % S.versions)
const versionOf = (b) => b % S.versions
export const counts = (b) => (Math.floor(b / S.versions) & 1) === 1
const next = (b) => (bad === 'no versions' ? 0 : versionOf(b) + 1)
export const charged = (b, tick) => entry(tick, 1, next(b))
export const cleared = (b) => entry(Math.floor(b / (2 * S.versions)), 0, next(b))
/** The ticks from an entry's to e; below 0 if it is ahead. */
export function ageOf(b, e) {
  const age = (((e - Math.floor(b / (2 * S.versions))) % S.wrap) + S.wrap) % S.wrap
  return age >= S.wrap - S.ahead ? age - S.wrap : age
}
export const isIn = (b, e) => counts(b) && ageOf(b, e) < S.W

export const tickOf = (now) => Math.floor(now / S.sub)
/** The date of a unit charged in the cell's tick e. */
export const dateOf = (e, now) => {
  if (e !== tickOf(now) || bad === 'dated by the tick before') return e
  return Math.ceil(now / S.sub)
}

export const load = (i) => (m) => m[i]
export const store = (i, x) => (m) => {
  m[i] = x
}
export const cas = (i, from, to) => (m) => {
  if (m[i] !== from) return false
  m[i] = to
  return true
}
