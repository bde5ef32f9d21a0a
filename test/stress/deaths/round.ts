// Threads that die, and threads that live on, on one limiter: the main thread's side.
import { setTimeout as pause } from 'node:timers/promises'
import { createLimiter, manualClock } from 'millrace'
import { random } from '../../algorithms/random.js'
import { Log } from '../log.js'
import { Sweep } from '../sweep.js'
import { Timeline, widthOf } from '../timeline.js'
import { Board, GO, PAUSE, STOP } from './board.js'
import { compareCounts, orphans, quotaComplaints } from './checks.js'
import { Member } from './crew.js'
import { Decider, timelineOf } from './decider.js'
import { BUCKETS, type Job, KEYS, LIMIT, type Manner, WINDOW_MS } from './job.js'

export interface Findings {
  deaths: Record<Exclude<Manner, 'survive'>, number>
  /** Deaths in the midst of an operation on a judged key. */
  amidst: number
  /** Units that dead threads had charged and nobody was told of. */
  unitsLeft: number
  /** What `stats().lostWays` said, and how many ways were found CLAIMED and NAMED without a thread. */
  lostWays: number
  claimed: number
  named: number
  /** Operations of the survivors, and windows judged. */
  operations: number
  windows: number
  over: number
  hangs: number
  complaints: string[]
}

/** Operations that each survivor must get through after the deaths of a wave. */
const SIGN_OF_LIFE = 200
/** Thousands of times what they take. Only a thread that hangs waits so long. */
const MAX_WAIT_MS = 60_000
const SURVIVORS = 2
const MAIN = 0
/** Most deaths among decisions, or half and half, or most while a key gets its place. */
const NEW_KEYS = [0.02, 0.4, 0.95]

export interface Plan {
  /** How the threads of each wave die. */
  readonly manners: readonly (readonly Exclude<Manner, 'survive'>[])[]
  readonly maxKeys: number
  readonly seed: number
}

/** What was waited for never came. */
class Hang extends Error {}

export class Round {
  readonly findings: Findings = {
    deaths: { terminate: 0, exit: 0, memory: 0 },
    amidst: 0,
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
  readonly #members: Member[] = []

  constructor(plan: Plan) {
    this.#plan = plan
    this.#next = random(plan.seed)
    // Denied, not displaced: a key keeps its place while it counts, so that its windows can be judged.
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
      const survivors = [...this.#members]
      await this.#until(
        () => survivors.every(({ job }) => this.#log.made(job.thread) > 0),
        'survivors set out',
      )
      for (const manners of this.#plan.manners) await this.#runWave(manners, survivors, onDeath)
      this.#board.order = STOP
      await this.#until(() => survivors.every(({ hasEnded }) => hasEnded), 'survivors stop')
      this.#finish(survivors)
    } catch (error) {
      if (!(error instanceof Hang)) throw error
      this.findings.hangs++
      this.findings.complaints.push(error.message)
    } finally {
      await Promise.all(this.#members.map(({ worker }) => worker.terminate()))
    }
    return this.findings
  }

  async #runWave(
    manners: Plan['manners'][number],
    survivors: readonly Member[],
    onDeath: () => void,
  ): Promise<void> {
    this.#board.order = GO
    this.#board.clockRuns = true
    const doomed = manners.map((manner) => this.#start(manner, NEW_KEYS[this.#below(3)]!))
    for (const member of doomed) {
      await this.#until(() => this.#log.made(member.job.thread) > 0 || member.hasEnded, 'a thread sets out')
      if (member.job.manner !== 'terminate') continue
      this.#spin(this.#next() ** 3 * 5)
      void member.worker.terminate()
    }
    this.#board.clockRuns = false // so that what the dead leave is still there when it is examined
    await this.#until(() => doomed.every(({ hasEnded }) => hasEnded), 'threads die')
    for (const { job } of doomed) {
      if (job.manner !== 'survive') this.findings.deaths[job.manner]++
      onDeath()
    }
    await this.#seeLife(survivors)
    this.#board.order = PAUSE
    await this.#until(
      () => survivors.every(({ job }) => this.#board.hasPaused(job.thread)),
      'survivors pause',
    )
    this.#examine(doomed)
    // So far ahead that what the examination charged, a window and a granule from here, is out of all windows again.
    this.#clock.advance(3 * WINDOW_MS)
  }

  /** The survivors and this thread go on deciding. */
  async #seeLife(survivors: readonly Member[]): Promise<void> {
    const before = survivors.map(({ job }) => this.#log.made(job.thread))
    this.#own.pin()
    for (let i = 0; i < SIGN_OF_LIFE; i++) this.#own.operate(0.2)
    this.#log.unpin(MAIN)
    const goOn = () =>
      survivors.every(({ job }, i) => this.#log.made(job.thread) >= before[i]! + SIGN_OF_LIFE)
    await this.#until(goOn, 'survivors go on')
  }

  /** All threads are dead or pause, the clock stands. */
  #examine(doomed: readonly Member[]): void {
    const { findings } = this
    const intents = doomed.map(({ job }) => this.#board.intentOf(job.thread))
    findings.amidst += intents.filter((intent) => intent !== undefined).length
    this.#judge()
    const { unitsLeft, complaints } = compareCounts(this.#shared, this.#log, intents)
    findings.unitsLeft += unitsLeft
    findings.complaints.push(...complaints, ...quotaComplaints(this.#shared))
    for (const { complaint } of doomed) if (complaint !== undefined) findings.complaints.push(complaint)
  }

  #finish(survivors: readonly Member[]): void {
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

  #start(manner: Manner, newKeys: number): Member {
    const thread = 1 + this.#members.length
    // In its place, before it is there: what it will log is of this tick or later.
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
    const member = new Member(job, () => this.#log.unpin(thread))
    this.#members.push(member)
    return member
  }

  #judge(): void {
    this.#timeline.now()
    this.#sweep.advance(this.#timeline.tick)
  }

  /** Lets other threads run until it is so, and judges meanwhile. Too long: something hangs. */
  async #until(isSo: () => boolean, what: string): Promise<void> {
    const deadlineMs = performance.now() + MAX_WAIT_MS
    while (!isSo()) {
      this.#judge()
      if (performance.now() > deadlineMs) throw new Hang(`waited in vain: ${what}`)
      await pause(1)
    }
  }

  #below(end: number): number {
    return Math.floor(this.#next() * end)
  }

  /** Without giving up the thread: a thread is to die at any moment, not only at this one's timers. */
  #spin(ms: number): void {
    const endMs = performance.now() + ms
    while (performance.now() < endMs);
  }
}
