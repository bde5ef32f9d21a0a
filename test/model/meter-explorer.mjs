// Explores every interleaving of a few threads, depth first, equal states once, for the model of `meter.mjs`.
//
// A thread runs operations one after another, and an operation runs in phases. A phase is a generator that yields
// one shared-memory operation at a time, a function (words, ghost, state) => result. It returns [next phase, what
// it carries over] or ['done', result]. So the state of a thread is its phase, what it carries, and what it has
// read in this phase: the explorer replays the phase on those results to find the next operation.
//
// words[0] is the clock. It moves on by any of `jumps`, up to `end`. Threads are interchangeable: the hash of a
// state does not know which is which.

let h1, h2
const start = () => {
  h1 = 0x1234567
  h2 = 0x7654321
}
const mix = (x) => {
  h1 = Math.imul(h1 ^ x, 0x9e3779b1)
  h1 ^= h1 >>> 15
  h2 = Math.imul(h2 + x, 0x85ebca6b) ^ (h2 >>> 13)
}
const names = new Map()
const idOf = (name) => {
  if (!names.has(name)) names.set(name, names.size + 1)
  return names.get(name)
}
const mixAny = (x) => {
  if (x === undefined) mix(-7919)
  else if (typeof x === 'number') mix(x)
  else if (typeof x === 'boolean') mix(x ? -11 : -13)
  else if (typeof x === 'string') mix(idOf(x) - 100000)
  else
    for (const name in x) {
      mix(idOf(name) - 200000)
      mixAny(x[name])
    }
}
function hashThread(t) {
  start()
  mix(idOf(t.phase))
  mix(t.ops.length)
  for (const op of t.ops) mixAny(op)
  mixAny(t.x)
  mix(t.log.length - 5000)
  t.log.forEach(mixAny)
  t.a = h1 ^ (h1 >>> 16)
  t.b = h2 ^ (h2 >>> 15)
}
/** A hash of 53 bits, never 0. */
function hashOf(s) {
  let a = 0
  let b = 0
  for (const t of s.t) {
    if (t.a === undefined) hashThread(t)
    a = (a + Math.imul(t.a, 0xc2b2ae35)) | 0
    b = (b + Math.imul(t.b ^ (t.a >>> 3), 0x27d4eb2f)) | 0
  }
  start()
  for (const x of s.m) mix(x)
  for (const x of s.g) mix(x)
  mix(a)
  mix(b)
  const x = Math.imul(h1 ^ (h1 >>> 16), 0xc2b2ae35) ^ Math.imul(h2 ^ (h2 >>> 15), 0x27d4eb2f)
  const y = Math.imul(h2 ^ (h2 >>> 14), 0x165667b1) ^ (x >>> 7)
  return 4294967296 * (2097151 & y) + (x >>> 0) + 1
}

/** A set of hashes. */
class Seen {
  size = 0
  #table = new Float64Array(1 << 16)

  add(h) {
    if (this.size * 3 > this.#table.length * 2) this.#grow()
    if (!this.#put(h)) return false
    this.size++
    return true
  }
  #put(h) {
    const table = this.#table
    const last = table.length - 1
    let i = (h % 4294967291) & last
    for (; table[i] !== 0; i = (i + 1) & last) if (table[i] === h) return false
    table[i] = h
    return true
  }
  #grow() {
    const old = this.#table
    this.#table = new Float64Array(2 * old.length)
    for (const h of old) if (h !== 0) this.#put(h)
  }
}

const begin = (op, ops) => ({ ops, phase: 'begin', x: op, op, log: [] })

/** One step of a thread, in `s` itself, whose arrays and this thread are fresh. Returns what is wrong, if anything. */
function step(s, k, phases) {
  const t = s.t[k]
  let wrong
  const gen = phases[t.phase](t.x)
  let r = gen.next()
  for (const x of t.log) r = gen.next(x)
  if (!r.done) {
    s.wrong = undefined
    const x = r.value(s.m, s.g, s)
    wrong = s.wrong
    t.log = [...t.log, x]
    r = gen.next(x)
  }
  if (!r.done) return wrong
  const [phase, x] = r.value
  t.log = []
  if (phase !== 'done') {
    t.phase = phase
    t.x = { ...t.op, ...x }
  } else if (t.ops.length > 0) Object.assign(t, begin(t.ops[0], t.ops.slice(1)))
  else Object.assign(t, { phase: 'done', result: x, x: {} })
  return wrong
}

const copy = (s, k) => {
  const n = { m: s.m.slice(), g: s.g.slice(), t: s.t.slice() }
  const { ops, phase, x, op, log } = s.t[k]
  n.t[k] = { ops, phase, x, op, log }
  return n
}

/** The result of one operation alone, `gap` later: nobody comes in between. */
export function alone(s, op, gap, phases) {
  const q = { m: s.m.slice(), g: s.g.slice(), t: [begin(op, [])] }
  q.m[0] += gap
  for (let n = 0; n < 500; n++) {
    const wrong = step(q, 0, phases)
    if (wrong) return wrong
    if (q.t[0].phase === 'done') return q.t[0].result
  }
  return 'hangs'
}

const isOver = (t) => t.phase === 'done' || t.phase === 'dead'

/**
 * `atRest` judges each state in which all threads are done or dead. One thread may die (`deaths`).
 *
 * @returns {{states: number, ends: number, wrong?: string, schedule?: string, stopped?: boolean}}
 */
export function exploreThreads(scenario) {
  const { words, ghost, threads, phases, end, jumps = [1], deaths = false, atRest, most } = scenario
  const first = { m: words, g: ghost, t: threads.map(([op, ...ops]) => begin(op, ops)) }
  const seen = new Seen()
  const stack = [{ s: first, k: 0, how: '' }]
  const n = threads.length
  const schedule = (how) => [...stack.map((f) => f.how), how].filter(Boolean).join(' ')
  let ends = 0
  seen.add(hashOf(first))
  while (stack.length > 0) {
    const f = stack[stack.length - 1]
    const { s } = f
    const k = f.k++
    let next
    let how
    let wrong
    if (k < n) {
      const t = s.t[k]
      if (isOver(t)) continue
      next = copy(s, k)
      how = `${k}:${t.phase}${t.log.length > 0 ? `+${t.log.length}` : ''}`
      wrong = step(next, k, phases)
    } else if (k < 2 * n) {
      const t = s.t[k - n]
      const hasBegun = t.phase !== 'begin' || t.log.length > 0
      if (!deaths || isOver(t) || !hasBegun || s.t.some((x) => x.phase === 'dead')) continue
      next = { m: s.m, g: s.g, t: s.t.slice() }
      next.t[k - n] = { ops: [], phase: 'dead', x: {}, op: {}, log: [] }
      how = `${k - n}:dies`
    } else if (k < 2 * n + jumps.length) {
      const by = jumps[k - 2 * n]
      if (s.m[0] + by > end) continue
      next = { m: s.m.slice(), g: s.g, t: s.t }
      next.m[0] += by
      how = `+${by}`
    } else {
      stack.pop()
      continue
    }
    if (wrong) return { states: seen.size, ends, wrong, schedule: schedule(how) }
    if (!seen.add(hashOf(next))) continue
    if (seen.size > most) return { states: seen.size, ends, stopped: true }
    if (next.t.every(isOver)) {
      ends++
      wrong = atRest(next)
      if (wrong) return { states: seen.size, ends, wrong, schedule: schedule(how) }
    }
    stack.push({ s: next, k: 0, how })
  }
  return { states: seen.size, ends }
}
