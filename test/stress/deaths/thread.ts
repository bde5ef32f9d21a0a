// A thread that decides until it is told to stop, or dies: the worker's side.
import { workerData } from 'node:worker_threads'
import type { Clock } from 'millrace'
import { SharedManualClock } from '#millrace/core/clock.js'
import { Log } from '../log.js'
import type { Timeline } from '../timeline.js'
import { Board, PAUSE, STOP } from './board.js'
import { Decider, timelineOf } from './decider.js'
import { BUCKETS, type Job, WINDOW_MS } from './job.js'

const { shared, memory, board: boardBuffer, thread, manner, newKeys, lifetime, seed } = workerData as Job
const log = new Log(memory)
const board = new Board(boardBuffer)
const timeline = timelineOf(shared)
const clock = new SharedManualClock(shared.clock as SharedArrayBuffer)

/** Operations between two pins. */
const TURN = 64
/** One operation in so many turns the clock, by up to a granule. */
const OPERATIONS_PER_ADVANCE = 200

/**
 * Ends its thread in the midst of an operation, at a reading that is not its first: while it gives a key a place. Where no
 * operation comes so far, for the table is full, at the first one after all.
 */
class FatalClock implements Clock {
  readonly #timeline: Timeline
  #readings = 0
  /** The reading that ends the thread. */
  fatal = Number.POSITIVE_INFINITY

  constructor(timeline: Timeline) {
    this.#timeline = timeline
  }

  beginOperation(): void {
    this.#readings = 0
  }

  now(): number {
    if (++this.#readings >= this.fatal) process.exit()
    return this.#timeline.now()
  }
}

/** Operations in which a thread that is to exit waits for an insertion. */
const GRACE = 500

const ownClock = new FatalClock(timeline)
const decider = new Decider(
  shared,
  log,
  board,
  thread,
  seed,
  timeline,
  manner === 'exit' ? ownClock : timeline,
)

function survive(): void {
  for (let order = board.order; order !== STOP; order = board.order) {
    decider.pin()
    if (order === PAUSE) {
      board.pause(thread)
      continue
    }
    decider.waitForSweep()
    for (let i = 0; i < TURN; i++) {
      decider.operate(newKeys)
      const turnsClock = board.clockRuns && decider.next() < 1 / OPERATIONS_PER_ADVANCE
      if (turnsClock) clock.advance((decider.next() * WINDOW_MS) / BUCKETS)
    }
  }
  log.unpin(thread)
}

/** Decides until somebody ends it. What it keeps fills its memory, if that is what it dies of. */
function die(): never {
  const kept: unknown[] = []
  for (let operations = 0; ; operations++) {
    if (operations % TURN === 0) {
      decider.pin()
      decider.waitForSweep()
    }
    if (operations === lifetime) ownClock.fatal = 2 + (seed % 2)
    if (operations === lifetime + GRACE) ownClock.fatal = 1
    ownClock.beginOperation()
    const decision = decider.operate(newKeys)
    if (operations >= lifetime && manner === 'memory') kept.push(decision, new Array(64).fill(operations))
  }
}

if (manner === 'survive') survive()
else die()
