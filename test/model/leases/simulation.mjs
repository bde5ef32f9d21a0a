// Runs nodes and a server of the model of leases: a network with delays, losses and doubles, clocks that drift, deaths,
// machines that stand still, and servers that lose what they had. Time is the server's, in milliseconds.
import { Node } from './node.mjs'
import { Server } from './server.mjs'
import { S, setUp } from './settings.mjs'

/** Numbers from 0 to 1, by mulberry32. */
export function randomBy(seed) {
  let a = seed >>> 0
  return () => {
    a = (a + 0x6d2b79f5) >>> 0
    let t = Math.imul(a ^ (a >>> 15), a | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/** Events in the order of their times, and at one time in the order in which they were put. */
class Agenda {
  #heap = []
  #count = 0

  put(at, run) {
    const heap = this.#heap
    const event = { at, order: this.#count++, run }
    let i = heap.push(event) - 1
    for (let up = (i - 1) >> 1; i > 0 && isBefore(event, heap[up]); i = up, up = (i - 1) >> 1)
      heap[i] = heap[up]
    heap[i] = event
  }

  take() {
    const heap = this.#heap
    const [first] = heap
    const last = heap.pop()
    if (heap.length === 0) return first
    let i = 0
    for (let next = 1; next < heap.length; next = 2 * i + 1) {
      if (next + 1 < heap.length && isBefore(heap[next + 1], heap[next])) next++
      if (isBefore(last, heap[next])) break
      heap[i] = heap[next]
      i = next
    }
    heap[i] = last
    return first
  }
}

const isBefore = (a, b) => a.at < b.at || (a.at === b.at && a.order < b.order)

/** A machine: its clock, and the incarnation of the node that runs on it. */
class Machine {
  #simulation
  #clock
  #incarnation = 0
  /** Until then it stands still. */
  wakesAt = Number.NEGATIVE_INFINITY
  #sleptMs = 0

  constructor(simulation, index, clock) {
    this.#simulation = simulation
    this.index = index
    this.#clock = { offsetMs: 0, drift: 0, ...clock }
    this.start()
  }

  start() {
    const id = S.mistake === 'an id is used again' ? this.index : `${this.index}.${this.#incarnation++}`
    const node = new Node(id, {
      send: (message) => this.#simulation.send(this, node, message),
      decided: (request, allowed, at) => this.#simulation.decided(request, allowed, at),
      restore: (r, aged) => this.#simulation.restore(r, aged),
    })
    this.node = node
  }

  die() {
    this.node = undefined
  }

  standStill(at, ms) {
    this.wakesAt = Math.max(this.wakesAt, at + ms)
    this.#sleptMs += ms
  }

  /** What its clock shows. */
  timeAt(at) {
    const slept = S.mistake === 'the clock stops with the machine' ? this.#sleptMs : 0
    return this.#clock.offsetMs + (at - slept) * (1 + this.#clock.drift)
  }
}

class Simulation {
  #agenda = new Agenda()
  #network
  #messages = 0
  #replica
  admitted = []
  refused = 0
  losses = []

  constructor({ clocks, network, server }) {
    this.#network = network
    this.server = server
    this.machines = clocks.map((clock, i) => new Machine(this, i, clock))
  }

  /** Hands a message over, and its reply. `network(index, machine)` says how: see `run`. */
  send(machine, node, message) {
    const { there, back, doubled } = this.#network(this.#messages++, machine.index)
    const sentAt = this.now
    const arrive = (at, isLast) =>
      this.#agenda.put(at, () => {
        const reply = this.server.message(this.now, message)
        if (reply !== undefined && back !== undefined && isLast)
          this.#onMachine(this.now + back, machine, node, (now) => node.receive(now, reply))
      })
    if (there !== undefined) arrive(sentAt + there, true)
    if (doubled !== undefined) arrive(sentAt + doubled, false)
    this.#onMachine(sentAt + S.deadlineMs, machine, node, () => node.late(message.seq))
  }

  restore(r, aged) {
    this.server.restore(this.now, r, aged)
  }

  decided({ cost, asked }, allowed, at = this.now) {
    if (allowed) this.admitted.push({ at, cost, asked })
    else this.refused++
  }

  /** Runs a plan. */
  run(plan, untilMs) {
    for (const step of plan) this.#plan(step)
    for (;;) {
      const event = this.#agenda.take()
      if (event === undefined || event.at > untilMs) return
      this.now = event.at
      event.run()
    }
  }

  #plan(step) {
    const { at, node: index } = step
    const machine = this.machines[index ?? 0]
    const steps = {
      ask: () => this.#onMachine(at, machine, undefined, (now) => this.#ask(machine, now, step)),
      rest: () => this.#onMachine(at, machine, undefined, (now) => machine.node?.rest(now)),
      die: () => this.#agenda.put(at, () => machine.die()),
      start: () => this.#agenda.put(at, () => machine.start()),
      sleep: () => this.#agenda.put(at, () => machine.standStill(at, step.ms)),
      strict: () => this.#agenda.put(at, () => this.#askStrictly(step)),
      lose: () => this.#agenda.put(at, () => this.#lose(() => this.server.lose())),
      copy: () => this.#agenda.put(at, () => (this.#replica = this.server.copy())),
      failOver: () => this.#agenda.put(at, () => this.#failOver()),
    }
    steps[step.do]()
  }

  #ask(machine, now, { cost = 1, times = 1 }) {
    for (let i = 0; i < times; i++) machine.node?.ask(now, { cost, asked: this.now })
  }

  #askStrictly({ cost = 1, times = 1 }) {
    for (let i = 0; i < times; i++)
      this.decided({ cost, asked: this.now }, this.server.strict(this.now, cost))
  }

  #lose(run) {
    this.losses.push(this.now)
    run()
  }

  #failOver() {
    if (this.#replica !== undefined) this.#lose(() => this.server.remember(this.#replica))
  }

  /** Later, if the machine stands still; never, if its node has died. */
  #onMachine(at, machine, node, run) {
    this.#agenda.put(at, () => {
      if (machine.wakesAt > this.now) return this.#onMachine(machine.wakesAt, machine, node, run)
      if (node === undefined || machine.node === node) run(machine.timeAt(this.now))
    })
  }
}

/**
 * Runs a plan: steps `{ at, do, node?, cost?, times?, ms? }` with `do` one of ask, rest, die, start, sleep, strict, lose,
 * copy and failOver.
 *
 * @param clocks of each machine: how many milliseconds it is off, and by which share it goes wrong
 * @param network for each message the milliseconds there and back; undefined: lost. `doubled`: when it comes once more
 * @param makeServer another one than that of the model
 * @returns what was admitted, when; how often the server was asked; and `wrong`, if a window was over
 */
export function run({ settings, clocks, network, plan, untilMs }, makeServer = () => new Server()) {
  setUp(settings)
  const simulation = new Simulation({ clocks, network, server: makeServer() })
  simulation.run(plan, untilMs)
  const { admitted, refused, losses, server } = simulation
  admitted.sort((a, b) => a.at - b.at)
  return { admitted, refused, trips: server.trips, wrong: judge(admitted, losses) }
}

/** The units of the fullest window that ends at an admission of these. */
export function fullest(admitted, windowMs, isMeant = () => true) {
  let [worst, sum, from] = [0, 0, 0]
  for (const { at, cost } of admitted) {
    sum += cost
    while (admitted[from].at <= at - windowMs) sum -= admitted[from++].cost
    if (isMeant(at)) worst = Math.max(worst, sum)
  }
  return worst
}

/**
 * No window has more than the limit. After a loss of data a window has at most the limit of before and the limit of
 * afterwards, as long as leases of before may be spent in it.
 */
function judge(admitted, losses) {
  for (const { limit, windowMs } of S.rules) {
    const isAfterLoss = (at) => losses.some((lost) => at >= lost && at < lost + S.leaseMs + windowMs)
    const over = fullest(admitted, windowMs, (at) => !isAfterLoss(at))
    if (over > limit) return `${over} of ${limit} in ${windowMs} ms`
    const afterLoss = fullest(admitted, windowMs, isAfterLoss)
    if (afterLoss > limit * (1 + losses.length)) return `${afterLoss} of ${limit} after a loss`
  }
  return undefined
}
