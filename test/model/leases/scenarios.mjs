// Scenarios of the model of leases: what the fullest window has at most, and the rule without which it has more. Random
// runs hardly meet some of them.
const WINDOW = { limit: 10, windowMs: 6000, parts: 60 }
/** A node wants all that may be free. */
const BASE = { rules: [WINDOW], leaseMs: 1200, wants: 9, keeps: 0 }
const AT_ONCE = { there: 0, back: 0 }
const LOST = {}

const ask = (at, times = 1, more = {}) => ({ at, do: 'ask', node: 0, times, ...more })
const rest = (at) => ({ at, do: 'rest', node: 0 })
const die = (at) => ({ at, do: 'die', node: 0 })
const strict = (at, times = 10) => ({ at, do: 'strict', times })

/** @param special how single messages go, by their number; the others arrive at once */
const scenario = (plan, { settings = {}, special = {}, clock = {}, most = 10, later = AT_ONCE } = {}) => ({
  settings: { ...BASE, ...settings },
  clocks: [clock],
  network: (index) => special[index] ?? (index < 3 ? AT_ONCE : later),
  plan,
  untilMs: 20_000,
  most,
})

/** By the rule that is left out. */
export const scenarios = {
  'from the reply': scenario([ask(0), ask(3000, 9), die(3000.5), strict(7300)], {
    settings: { deadlineMs: 3000 },
    special: { 0: { there: 0, back: 1900 }, 1: LOST, 2: LOST },
  }),
  'those that wait spend an ended lease': scenario([ask(0), ask(100, 9), strict(7300)], {
    settings: { deadlineMs: 3000 },
    special: { 0: { there: 0, back: 1900 }, 1: LOST },
  }),
  'no margin for drift': scenario([ask(0), ask(1262, 9), die(1263), strict(7200)], {
    settings: { leaseMs: 1199, margin: 0.06 },
    clock: { drift: -0.05 },
    special: { 1: LOST },
  }),
  'the clock stops with the machine': scenario(
    [ask(0), { at: 10, do: 'sleep', node: 0, ms: 5000 }, ask(5020, 9), die(5021), strict(7300)],
    { special: { 1: LOST } },
  ),
  'leases never end': scenario([ask(0), ask(5000, 9), die(5001), strict(7300)], { special: { 1: LOST } }),
  'a record ends with its lease': scenario([ask(0), ask(1100, 9), die(1101), strict(1300)], {
    special: { 1: LOST },
  }),
  'late replies count': scenario([ask(0), ask(60), ask(510, 20)], {
    special: { 0: { there: 0, back: 500 }, 2: LOST },
    later: LOST,
    most: 9, // the first decision came too late
  }),
  'old messages count': scenario([ask(0), rest(100), ask(200), ask(210, 8), strict(501)], {
    special: { 1: { there: 400, back: 0 } },
    later: LOST,
  }),
  'an id is used again': scenario(
    [ask(0), ask(100, 9), die(101), { at: 102, do: 'start' }, ask(110), ask(170, 10)],
    {
      special: { 1: LOST },
    },
  ),
  'the age of the first': scenario([ask(0), ask(99), ask(123, 8), rest(200), strict(6100)], {
    settings: { keeps: 9 },
    special: { 1: LOST },
  }),
  'ages from the oldest': scenario([ask(0), ask(900), ask(910, 4), ask(1190), rest(1195), strict(7000)], {
    special: { 1: { there: 0 } },
  }),
  'a return extends the lease': scenario([ask(0), rest(1190), ask(2300, 9), die(2301), strict(7300)], {
    settings: { keeps: 9 },
    special: { 2: LOST },
  }),
  'expired units are sent': scenario([ask(0), strict(7350), ask(7400), ask(7410, 9)]),
  'nothing is restored': scenario(
    [ask(0), ask(10, 3), rest(20), { at: 100, do: 'lose' }, ask(110), strict(120), ask(130, 3)],
    { settings: { wants: 3 } },
  ),
  'held units of before a loss are lost': scenario(
    [ask(0), { at: 100, do: 'lose' }, ask(110), rest(120), strict(200), ask(210, 8)],
    { settings: { keeps: 9 } },
  ),
  'spent since the last reply': scenario([
    ask(0),
    { at: 50, do: 'copy' },
    ask(60, 5),
    rest(100),
    { at: 200, do: 'failOver' },
    ask(300),
    ask(310, 8),
  ]),
  'leases by the first rule': scenario([ask(0), ask(10, 9)], {
    settings: { rules: [WINDOW, { ...WINDOW, limit: 5 }] },
    most: 5,
  }),
  'the rest of a lease is enough': scenario([ask(0), ask(10, 2, { cost: 6 })], { later: LOST, most: 7 }),
  'a strict caller sees no leases': scenario([ask(0), strict(10), ask(20, 9)]),
}
