// A round of threads on one limiter, some of which die: the main thread's side.
import { setTimeout as pause } from 'node:timers/promises'
import { createLimiter, manualClock } from 'millrace'
import { random } from '../../algorithms/random.js'
import { Log } from '../log.js'
import { Sweep } from '../sweep.js'
import { Timeline, widthOf } from '../timeline.js'
import { Board, GO, PAUSE, STOP } from './board.js'
import { compareCounts, orphans, quotaComplaints } from './checks.js'
import { Decider, timelineOf } from './decider.js'
import { BUCKETS, type Job, KEYS, LIMIT, type Manner, WINDOW_MS } from './job.js'
import { RoundThread } from './round-thread.js'

export interface Findings {
  deaths: Record<Exclude<Manner, 'survive'>, number>
  /** Deaths during an operation on a judged key. */
  midOperation: number
  /** Units charged by dead threads without a reported decision. */
  unitsLeft: number
  /** `stats().lostWays`, and the ways found CLAIMED or NAMED without a living thread. */
  lostWays: number
  claimed: number
  named: number
  /** Operations of the survivors, windows judged, and windows over the limit. */
  operations: number
  windows: number
  over: number
  hangs: number
  complaints: string[]
}

/** Windows that are judged before the threads of a wave start. */
const WINDOWS_BEFORE_DEATHS = 1_100
/** Operations that each survivor must complete after the deaths of a wave. */
const OPERATIONS_AFTER_DEATHS = 200
/** The timeout of a wait: thousands of times its usual duration. */
const MAX_WAIT_MS = 60_000
const SURVIVORS = 2
const MAIN = 0
/**
 * The share of operations on new keys: deaths fall mostly into decisions, into both, or mostly into
 * insertions.
 */
const NEW_KEYS = [0.02, 0.4, 0.95]

export interface Plan {
  /** The manner of death of each thread, wave by wave. */
  readonly manners: readonly (readonly Exclude<Manner, 'survive'>[])[]
  readonly maxKeys: number
  readonly seed: number
}

/** A wait timed out. */
class Hang extends Error {}

export class Round {
  readonly findings: Findings = {
    deaths: { terminate: 0, exit: 0, memory: 0 },
    midOperation: 0,
    unitsLeft: 0,
    lostWays: 0,
    claimed: 0,
    named: 0,
    operations: 0,
    windows: 0,
    over: 0,
    hangs: 0,
    complaints: [],
  }
  readonly #plan: Plan
  readonly #next: () => number
  readonly #clock = manualClock(Timeline.startMs(WINDOW_MS, BUCKETS))
  readonly #shared
  readonly #limiter
  readonly #log: Log
  readonly #board: Board
  readonly #sweep: Sweep
  readonly #own: Decider
  readonly #timeline: Timeline
  readonly #threads: RoundThread[] = []

  constructor(plan: Plan) {
    this.#plan = plan
    this.#next = random(plan.seed)
    // onFull 'deny': no key is evicted while it counts, so that its windows can be judged.
    this.#limiter = createLimiter({
      limit: LIMIT,
      window: WINDOW_MS,
      granularity: WINDOW_MS / BUCKETS,
      maxKeys: plan.maxKeys,
      onFull: 'deny',
      clock: this.#clock,
    })
    this.#shared = this.#limiter.share()
    const threads = 1 + SURVIVORS + plan.manners.flat().length
    this.#log = new Log(Log.allocate(threads, KEYS))
    this.#board = new Board(Board.allocate(threads))
    this.#sweep = new Sweep(this.#log, LIMIT, widthOf(this.#limiter.rule))
    this.#timeline = timelineOf(this.#shared)
    for (let thread = 0; thread < threads; thread++) this.#log.unpin(thread)
    this.#own = new Decider(this.#shared, this.#log, this.#board, MAIN, plan.seed, this.#timeline)
  }

  async run(onDeath: () => void): Promise<Findings> {
    try {
      for (let i = 0; i < SURVIVORS; i++) this.#start('survive', 0.05)
      const survivors = [...this.#threads]
      await this.#until(
        () => survivors.every(({ job }) => this.#log.made(job.thread) > 0),
        'the survivors start to decide',
      )
      for (const manners of this.#plan.manners) await this.#runWave(manners, survivors, onDeath)
      this.#board.order = STOP
      await this.#until(() => survivors.every(({ hasEnded }) => hasEnded), 'the survivors stop')
      this.#finish(survivors)
    } catch (error) {
      if (!(error instanceof Hang)) throw error
      this.findings.hangs++
      this.findings.complaints.push(error.message)
    } finally {
      await Promise.all(this.#threads.map(({ worker }) => worker.terminate()))
    }
    return this.findings
  }

  async #runWave(
    manners: Plan['manners'][number],
    survivors: readonly RoundThread[],
    onDeath: () => void,
  ): Promise<void> {
    this.#board.order = GO
    this.#board.clockRuns = true
    const windows = this.#sweep.windows + WINDOWS_BEFORE_DEATHS
    await this.#until(() => this.#sweep.windows >= windows, 'the survivors fill windows')
    const doomed = manners.map((manner) => this.#start(manner, NEW_KEYS[this.#below(3)]!))
    for (const roundThread of doomed) {
      await this.#until(
        () => this.#log.made(roundThread.job.thread) > 0 || roundThread.hasEnded,
        'a thread starts to decide',
      )
      if (roundThread.job.manner !== 'terminate') continue
      this.#spin(this.#next() ** 3 * 5)
      void roundThread.worker.terminate()
    }
    this.#board.clockRuns = false // so that the charges of the dead have not expired when they are examined
    await this.#until(() => doomed.every(({ hasEnded }) => hasEnded), 'the threads die')
    for (const { job } of doomed) {
      if (job.manner !== 'survive') this.findings.deaths[job.manner]++
      onDeath()
    }
    await this.#expectProgress(survivors)
    this.#board.order = PAUSE
    await this.#until(
      () => survivors.every(({ job }) => this.#board.hasPaused(job.thread)),
      'the survivors pause',
    )
    this.#examine(doomed)
    // The examination charged keys at a window and a granule from now. Three windows later these charges have
    // expired.
    this.#clock.advance(3 * WINDOW_MS)
  }

  /** Waits until the survivors and this thread have made further decisions. */
  async #expectProgress(survivors: readonly RoundThread[]): Promise<void> {
    const before = survivors.map(({ job }) => this.#log.made(job.thread))
    this.#own.pin()
    for (let i = 0; i < OPERATIONS_AFTER_DEATHS; i++) this.#own.operate(0.2)
    this.#log.unpin(MAIN)
    const haveProgressed = () =>
      survivors.every(({ job }, i) => this.#log.made(job.thread) >= before[i]! + OPERATIONS_AFTER_DEATHS)
    await this.#until(haveProgressed, 'the survivors go on deciding')
  }

  /** Checks counts and quotas while all threads are dead or paused and the clock stands still. */
  #examine(doomed: readonly RoundThread[]): void {
    const { findings } = this
    const intents = doomed.map(({ job }) => this.#board.intentOf(job.thread))
    findings.midOperation += intents.filter((intent) => intent !== undefined).length
    this.#judge()
    const { unitsLeft, complaints } = compareCounts(this.#shared, this.#log, intents)
    findings.unitsLeft += unitsLeft
    findings.complaints.push(...complaints, ...quotaComplaints(this.#shared))
    for (const { complaint } of doomed) if (complaint !== undefined) findings.complaints.push(complaint)
  }

  #finish(survivors: readonly RoundThread[]): void {
    const { findings } = this
    this.#judge()
    const { lostWays } = this.#limiter.stats()
    const { claimed, named } = orphans(this.#shared)
    const deaths = Object.values(findings.deaths).reduce((sum, count) => sum + count)
    if (lostWays > deaths || claimed > lostWays) {
      findings.complaints.push(`${deaths} deaths, ${lostWays} ways lost by the statistics, ${claimed} found`)
    }
    Object.assign(findings, {
      lostWays,
      claimed,
      named,
      windows: this.#sweep.windows,
      over: this.#sweep.over,
    })
    findings.complaints.push(...this.#sweep.complaints)
    for (const { job, complaint } of survivors) {
      findings.operations += this.#log.made(job.thread)
      if (complaint !== undefined) findings.complaints.push(complaint)
    }
  }

  #start(manner: Manner, newKeys: number): RoundThread {
    const thread = 1 + this.#threads.length
    // Pins on behalf of the thread before it starts: its entries will be of this tick or later.
    this.#timeline.now()
    this.#log.pin(thread, this.#timeline.tick)
    const job: Job = {
      shared: this.#shared,
      memory: this.#log.memory,
      board: this.#board.buffer,
      thread,
      manner,
      newKeys,
      lifetime: this.#below(3_000),
      seed: this.#plan.seed + thread,
    }
    const roundThread = new RoundThread(job, () => this.#log.unpin(thread))
    this.#threads.push(roundThread)
    return roundThread
  }

  #judge(): void {
    this.#timeline.now()
    this.#sweep.advance(this.#timeline.tick)
  }

  /** Judges windows until the condition holds. @throws Hang after a timeout */
  async #until(isMet: () => boolean, event: string): Promise<void> {
    const deadlineMs = performance.now() + MAX_WAIT_MS
    while (!isMet()) {
      this.#judge()
      if (performance.now() > deadlineMs) throw new Hang(`timed out waiting until ${event}`)
      await pause(1)
    }
  }

  #below(end: number): number {
    return Math.floor(this.#next() * end)
  }

  /** Busy-waits, so that deaths fall at any moment and not only at this thread's timers. */
  #spin(ms: number): void {
    const endMs = performance.now() + ms
    while (performance.now() < endMs);
  }
}
