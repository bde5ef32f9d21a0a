// The words of the model of `meter.mjs`, and what a scenario says about them.
//
// ADM is `epoch | state | uncounted | meter`, TICK is `tick | settled`, and AS_OF is `period | refunds in the
// period before | in the period`. NAME is the key. The clock counts units; a tick has G of them.

/** The scenario, and the mistake. */
export let S
export let bad
export function setUp(scenario, mistake) {
  S = scenario
  bad = mistake
}
export const [CLOCK, NAME, ADM, TICK, AS_OF] = [0, 1, 2, 3, 4]
export const [FREE, CLAIMED, NAMED, LIVE] = [0, 1, 2, 3]
export const mod = (x, m) => ((x % m) + m) % m

export const adm = (epoch, state, meter, uncounted = false) =>
  ((mod(epoch, S.epochs) * 4 + state) * 2 + +uncounted) * S.M + mod(meter, S.M)
export const epochOf = (v) => Math.floor(v / (8 * S.M))
export const stateOf = (v) => Math.floor(v / (2 * S.M)) & 3
export const isUncounted = (v) => (Math.floor(v / S.M) & 1) === 1
export const meterOf = (v) => v % S.M
export const withMeter = (v, meter, epochs = 0) => adm(epochOf(v) + epochs, stateOf(v), meter, isUncounted(v))

export const start = (tick) => tick * S.G
export const tickOf = (now) => Math.floor(now / S.G)
export const tickIn = (w) => w >> 1
export const isSettled = (w) => (w & 1) === 1
export const settled = (tick) => 2 * tick + 1
export const marked = (tick) => 2 * tick

export const load = (i) => (m) => m[i]
export const cas = (i, from, to) => (m) => {
  if (m[i] !== from) return false
  m[i] = to
  return true
}
export const store = (i, x) => (m) => {
  m[i] = x
}
export const clock = (m) => m[CLOCK]
