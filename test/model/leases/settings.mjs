// What a run of the model of leases is about. Its parts read it here, as one run goes at a time.

/**
 * `rules`: limit, windowMs and parts (granules of a window) of each. `leaseMs`: T. `margin`: what
 * the nodes leave for clocks that go wrong, as a share. `deadlineMs`: of a message. `wants` and `keeps`: what
 * the nodes of a scenario ask for and keep, in place of what their rate says.
 */
export const S = {}

export function setUp(settings) {
  for (const name of Object.keys(S)) delete S[name]
  Object.assign(S, { margin: 0.001, deadlineMs: 50, mistake: undefined }, settings)
}
