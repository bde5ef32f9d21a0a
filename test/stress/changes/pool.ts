// A pool that decides while its rule changes: calls are in flight at each change. The clock is turned by hand,
// so windows of minutes pass.
import { type AsyncLimiter, createLimiter, type Decision, type ManualClock, manualClock } from 'millrace'
import { random } from '../../algorithms/random.js'
import type { Admission } from '../../judge/changes-judge.js'
import { type Findings, hadBy, judgeRule, noFindings } from './findings.js'
import type { Change } from './job.js'
import { keyOf } from './keys.js'
import { nameOf, type Planned, plansFor } from './plan.js'
import { SHAPES } from './shapes.js'

const KEYS = 3
const THREADS = 2
const START_MS = 1_000_000_123
const SHAPE = { ...SHAPES[0]!, baseMs: 20_000, laterBuckets: [20, 5], keys: KEYS }
/** Calls in one turn of the event loop: several parts of a ring. */
const MOST_CALLS = 100
const MOST_IN_FLIGHT = 200
const TURNS_A_WINDOW = 8
const MOST_IN_BATCH = 40

/** An admission whose units may be given back later. */
type Entry = { -readonly [Field in keyof Admission]: Admission[Field] }

/** Runs rounds on a pool of two threads, each on a limiter of its own. */
export async function runPool(
  { rounds, seed }: { readonly rounds: number; readonly seed: number },
  onProgress: (rounds: number) => void,
): Promise<Findings> {
  const found = noFindings()
  for (let round = 0; round < rounds; round++) {
    await new PoolRound(seed * rounds + round, found).run()
    onProgress(round + 1)
  }
  return found
}

class PoolRound {
  readonly #found: Findings
  readonly #next: () => number
  readonly #plan: readonly Planned[]
  readonly #clock: ManualClock = manualClock(START_MS)
  readonly #limiter: AsyncLimiter
  readonly #entries: (Omit<Entry, 'first' | 'last'> & { readonly toMs: number })[] = []
  readonly #changes: Change[] = []
  readonly #inFlight = new Set<Promise<void>>()

  constructor(seed: number, found: Findings) {
    this.#found = found
    this.#next = random(seed)
    this.#plan = plansFor(SHAPE, seed)[0]!
    const { windowMs, buckets, limit } = this.#plan[0]!
    this.#limiter = createLimiter({
      name: nameOf(0),
      limit,
      window: windowMs,
      granularity: windowMs / buckets,
      maxKeys: 500,
      clock: this.#clock,
      engine: 'pool',
      pool: { minThreads: THREADS, maxThreads: THREADS },
    })
  }

  async run(): Promise<void> {
    try {
      for (const planned of this.#plan) {
        if (planned !== this.#plan[0]) await this.#turn(planned)
        for (let turn = 0; turn < TURNS_A_WINDOW; turn++) await this.#turn()
      }
      await Promise.all(this.#inFlight)
      await this.#judge()
    } finally {
      await this.#limiter.close()
    }
  }

  /** One turn of the event loop. The change comes between two of its calls. */
  async #turn(change?: Planned): Promise<void> {
    const calls = 2 + Math.floor(this.#next() * (MOST_CALLS - 2))
    const at = 1 + Math.floor(this.#next() * (calls - 1))
    for (let call = 0; call < calls; call++) {
      if (call === at && change !== undefined) this.#change(change)
      if (call === at && this.#next() < 0.4) this.#clock.advance(this.#advance())
      this.#track(this.#next() < 0.05 ? this.#checkMany() : this.#check())
    }
    await new Promise((resolve) => setImmediate(resolve))
    if (this.#inFlight.size > MOST_IN_FLIGHT) await Promise.all(this.#inFlight)
  }

  /** Mostly a few granules, at times a window. */
  #advance(): number {
    return Math.floor(this.#next() * this.#limiter.rule.windowMs * (this.#next() < 0.1 ? 1.5 : 0.1))
  }

  #track(call: Promise<void>): void {
    this.#inFlight.add(call)
    void call.finally(() => this.#inFlight.delete(call)).catch(() => {}) // `run` awaits the call itself
  }

  #change({ windowMs, buckets, limit }: Planned): void {
    const call = this.#limiter.update(nameOf(0), { window: windowMs, granularity: windowMs / buckets, limit })
    this.#changes.push({ rule: 0, windowMs, endMs: this.#clock.now() })
    this.#found.changes++
    this.#found.overlapped += this.#inFlight.size
    this.#track(call)
  }

  async #check(): Promise<void> {
    const key = this.#pickKey()
    const cost = 1 + Math.floor(this.#next() * 3)
    const isGivenBack = this.#next() < 0.1
    const fromMs = this.#clock.now()
    const decision = await this.#limiter.check(keyOf(key), cost)
    this.#found.decisions++
    const record = this.#plan.findIndex(({ limit }) => limit === decision.limit)
    if (record < 0) this.#found.mixed++
    if (!decision.allowed) return
    this.#found.admissions++
    const entry = { column: key, units: cost, fromMs, toMs: this.#clock.now(), record }
    this.#entries.push(entry)
    if (isGivenBack) await this.#giveBack(decision, entry)
  }

  async #giveBack(decision: Decision, entry: { units: number }): Promise<void> {
    const units = await this.#limiter.refund(decision)
    if (units > 0) this.#found.refunded++
    entry.units -= units
  }

  /** A batch does not say by which limit it decided. It is logged if the rule has not changed during the call. */
  async #checkMany(): Promise<void> {
    const keys = Array.from({ length: 1 + Math.floor(this.#next() * MOST_IN_BATCH) }, () => this.#pickKey())
    const fromMs = this.#clock.now()
    const record = this.#changes.length
    const { allowed } = await this.#limiter.checkMany(keys.map(keyOf))
    this.#found.batches++
    this.#found.decisions += keys.length
    if (this.#changes.length !== record) return
    for (const [i, column] of keys.entries())
      if (allowed[i] === 1) this.#entries.push({ column, units: 1, fromMs, toMs: this.#clock.now(), record })
  }

  #pickKey(): number {
    return Math.floor(KEYS * this.#next() ** 2)
  }

  async #judge(): Promise<void> {
    const { complaints } = this.#found
    const had = hadBy(this.#plan, this.#changes)
    const last = had.length - 1
    const tickOf = (record: number, ms: number) => {
      const { windowMs, buckets } = had[record]!
      return Math.floor((ms * buckets) / windowMs)
    }
    const admissions = this.#entries.map(({ toMs, ...entry }): Admission => {
      const { record, fromMs } = entry
      return { ...entry, first: tickOf(record, fromMs), last: tickOf(record, toMs) }
    })
    const judge = judgeRule(had, 'strict', KEYS, admissions, this.#found)
    for (let key = 0; key < KEYS; key++) {
      const used = await this.#limiter.usage(keyOf(key))
      const least = judge.usedAtLeast(key, last, this.#clock.now())
      if (used < least) complaints.push(`${keyOf(key)} has used ${used}, at least ${least} count`)
    }
    this.#clock.advance(3 * Math.max(...had.map(({ windowMs }) => windowMs)))
    for (let key = 0; key < KEYS; key++) {
      const decisions = [had[last]!.limit, 1].map((cost) => this.#limiter.check(keyOf(key), cost))
      const [whole, more] = await Promise.all(decisions)
      if (!whole!.allowed) complaints.push(`${keyOf(key)} is refused at rest`)
      if (more!.allowed) complaints.push(`${keyOf(key)} is over its limit at rest`)
    }
  }
}
