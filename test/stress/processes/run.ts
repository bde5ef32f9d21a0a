import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openLimiter } from 'millrace'
import { monotonicClock } from '#millrace/core/clock.js'
import { ADM, CLAIMED, HEADER, STATE, shapeFor } from '#millrace/memory/layout.js'
import { random } from '../../algorithms/random.js'
import { inCommas, type Progress } from '../../long-runs/progress.js'
import { GRANULE_MS, type Job, LIMIT, optionsFor, PROCESSES, WINDOW_MS } from './job.js'
import { Log } from './log.js'

const DECIDER = fileURLToPath(new URL('./decider.js', import.meta.url))
/** The extra time of a run for which its log has room. */
const SPARE_MS = 60_000
const MAX_WAIT_MS = 60_000
/** Deaths per slot before all processes die at once. */
const DEATHS_A_WAVE = 4

export interface Findings {
  deaths: number
  /** The times that all processes were killed and one process had the file alone. */
  aloneTimes: number
  /** Ways claimed by dead processes that were freed. */
  freedWays: number
  decisions: number
  units: number
  windows: number
  over: number
  fullest: number
  complaints: string[]
}

interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<unknown>
}

/** Runs processes on one file for some seconds. Each is killed at a random moment and replaced. */
export class Run {
  readonly #findings: Findings = {
    deaths: 0,
    aloneTimes: 0,
    freedWays: 0,
    decisions: 0,
    units: 0,
    windows: 0,
    over: 0,
    fullest: 0,
    complaints: [],
  }
  readonly #folder = mkdtempSync(join(tmpdir(), 'millrace-processes-'))
  readonly #next: () => number
  readonly #seconds: number
  readonly #job: Omit<Job, 'slot' | 'seed'>
  readonly #log: Log
  readonly #running: Running[] = []
  #isEnding = false
  #started = 0
  #seed: number

  constructor(seconds: number, seed: number) {
    this.#seconds = seconds
    this.#seed = 1_000 * seed
    this.#next = random(seed)
    const ticks = Math.ceil((1_000 * seconds + SPARE_MS) / GRANULE_MS)
    const { modulus } = shapeFor(WINDOW_MS, WINDOW_MS / GRANULE_MS, 2)
    const firstTick = Math.floor(monotonicClock.now() / GRANULE_MS) % modulus
    this.#job = { file: join(this.#folder, 'limits'), log: join(this.#folder, 'log'), firstTick, ticks }
    this.#log = Log.make(this.#job.log, ticks)
  }

  async run(progress: Progress): Promise<Findings> {
    const findings = this.#findings
    try {
      const slots = Array.from({ length: PROCESSES }, (_, slot) => slot)
      await Promise.all(slots.map((slot) => this.#start(slot)))
      const endMs = performance.now() + 1_000 * this.#seconds
      while (performance.now() < endMs && findings.complaints.length === 0) {
        await Promise.all(slots.map((slot) => this.#runWave(slot)))
        await this.#killAll()
        progress.at(`${inCommas(findings.deaths)} deaths, ${inCommas(this.#decisions)} decisions`)
      }
      await this.#finish()
    } finally {
      this.#isEnding = true
      for (const { child } of this.#running) child.kill('SIGKILL')
      await Promise.all(this.#running.map(({ ended }) => ended))
      rmSync(this.#folder, { recursive: true, force: true })
    }
    return findings
  }

  get #decisions(): number {
    let decisions = 0
    for (let slot = 0; slot < PROCESSES; slot++) decisions += this.#log.made(slot)
    return decisions
  }

  /** Starts a process and waits for its first decision. */
  async #start(slot: number): Promise<void> {
    const before = this.#log.made(slot)
    const job: Job = { ...this.#job, slot, seed: this.#seed + ++this.#started }
    const child = fork(DECIDER, [JSON.stringify(job)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    let complaint = ''
    child.stderr!.on('data', (chunk) => (complaint += chunk))
    let hasEnded = false
    const ended = once(child, 'exit').then(([code, signal]) => {
      hasEnded = true
      if (signal === 'SIGKILL' || (code === 0 && this.#isEnding)) return
      this.#findings.complaints.push(`a process exited with ${code ?? signal}: ${complaint}`)
    })
    this.#running[slot] = { child, ended }
    const deadlineMs = performance.now() + MAX_WAIT_MS
    while (this.#log.made(slot) === before && !hasEnded) {
      if (performance.now() > deadlineMs) throw new Error(`process ${slot} makes no decisions`)
      await pause(1)
    }
  }

  /** Kills and replaces the processes of one slot, independently of the other slots. */
  async #runWave(slot: number): Promise<void> {
    for (let i = 0; i < DEATHS_A_WAVE; i++) {
      await pause(this.#next() ** 2 * 50)
      if (this.#next() < 0.1) await this.#hold(slot)
      await this.#kill(slot)
      await this.#start(slot)
    }
  }

  async #kill(slot: number): Promise<void> {
    const { child, ended } = this.#running[slot]!
    child.kill('SIGKILL')
    await ended
    this.#findings.deaths++
  }

  /** Suspends a process at any point for about two windows. */
  async #hold(slot: number): Promise<void> {
    const { child } = this.#running[slot]!
    child.kill('SIGSTOP')
    await pause(this.#next() * 2 * WINDOW_MS)
    child.kill('SIGCONT')
  }

  /** Kills all processes and opens the file alone, after which no way may stay claimed. */
  async #killAll(): Promise<void> {
    await Promise.all(this.#running.map((_, slot) => this.#kill(slot)))
    const claimed = await this.#lostWays()
    this.#findings.freedWays += claimed.before
    this.#findings.aloneTimes++
    if (claimed.after !== 0) this.#findings.complaints.push(`${claimed.after} ways stayed lost`)
    await Promise.all(this.#running.map((_, slot) => this.#start(slot)))
  }

  /** Counts the claimed ways before and after opening the file alone. */
  async #lostWays(): Promise<{ before: number; after: number }> {
    const count = (): number => {
      const bytes = readFileSync(this.#job.file)
      const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)
      const shape = shapeFor(WINDOW_MS, WINDOW_MS / GRANULE_MS, words[HEADER.SETS]!)
      let claimed = 0
      for (let way = 0; way < shape.ways; way++) {
        if ((words[shape.waysAt + way * shape.wayWords + ADM]! & STATE) === CLAIMED) claimed++
      }
      return claimed
    }
    const before = count()
    const limiter = await openLimiter(optionsFor(this.#job.file))
    const { lostWays, evictedLive } = limiter.stats()
    if (evictedLive > 0)
      this.#findings.complaints.push(`${evictedLive} keys evicted: the table is too small to judge`)
    await limiter.close()
    return { before, after: lostWays + count() }
  }

  async #finish(): Promise<void> {
    this.#isEnding = true
    this.#log.stop()
    await Promise.all(this.#running.map(({ ended }) => ended))
    const { complaints, ...judged } = this.#log.judge(LIMIT)
    Object.assign(this.#findings, judged, { decisions: this.#decisions })
    this.#findings.complaints.push(...complaints)
  }
}

export function summaryOf(found: Findings): string {
  const { deaths, aloneTimes, freedWays, decisions, windows, over, fullest } = found
  return (
    `${inCommas(deaths)} deaths by SIGKILL in ${inCommas(decisions)} decisions of ${PROCESSES} processes: ` +
    `${inCommas(over)} of ${inCommas(windows)} windows over ${LIMIT} (fullest ${fullest}), ` +
    `${freedWays} lost ways freed in ${aloneTimes} exclusive openings, ${found.complaints.length} complaints`
  )
}
