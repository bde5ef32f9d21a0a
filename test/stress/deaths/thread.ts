// A thread that decides until it is stopped or dies: the worker's side.
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
const OPERATIONS_PER_PIN = 64
/** One operation in this many advances the clock, by up to a granule. */
const OPERATIONS_PER_ADVANCE = 200

/**
 * A clock that ends its thread at a reading after the first of an operation, which is during an insertion. If
 * the table is full and no operation inserts, it ends the thread at a first reading.
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

/** Operations for which a thread that exits waits for an insertion. */
const INSERTION_TIMEOUT = 500

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
    for (let i = 0; i < OPERATIONS_PER_PIN; i++) {
      decider.operate(newKeys)
      const advancesClock = board.clockRuns && decider.next() < 1 / OPERATIONS_PER_ADVANCE
      if (advancesClock) clock.advance((decider.next() * WINDOW_MS) / BUCKETS)
    }
  }
  log.unpin(thread)
}

/** Decides until the thread dies. With the manner `memory`, kept decisions fill its memory. */
function die(): never {
  const kept: unknown[] = []
  for (let operations = 0; ; operations++) {
    if (operations % OPERATIONS_PER_PIN === 0) {
      decider.pin()
      decider.waitForSweep()
    }
    if (operations === lifetime) ownClock.fatal = 2 + (seed % 2)
    if (operations === lifetime + INSERTION_TIMEOUT) ownClock.fatal = 1
    ownClock.beginOperation()
    const decision = decider.operate(newKeys)
    if (operations >= lifetime && manner === 'memory') kept.push(decision, new Array(64).fill(operations))
  }
}

if (manner === 'survive') survive()
else die()
