// Worker threads that decide on one limiter while its rules change: the worker's side.
import { parentPort, workerData } from 'node:worker_threads'
import { attachLimiter } from 'millrace'
import { Board } from './board.js'
import { Changer } from './changer.js'
import { Decider } from './decider.js'
import type { Job, Round, RoundLog } from './job.js'
import { plansFor } from './plan.js'

/** Operations between two looks at the board. */
const TURN = 32
/** Turns after the last change. */
const LAST_TURNS = 8

const { shape, thread, threads, board: buffer } = workerData as Job
const board = new Board(buffer, threads)

parentPort!.on('message', (round: Round | 'end') => {
  if (round === 'end') parentPort!.close()
  else parentPort!.postMessage(play(round))
})

function play({ index, shared, seed }: Round): RoundLog {
  const limiter = attachLimiter(shared)
  const plans = plansFor(shape, seed)
  const decider = new Decider(limiter, shape, plans, board, seed * threads + thread)
  const { changers } = shape
  const own = [thread, changers] as const
  let changer = thread < changers ? new Changer(limiter, board, plans, decider.next, own) : undefined
  const changes = changer?.changes ?? []
  board.meet(index)
  for (let last = 0; last < LAST_TURNS; ) {
    decider.turn(TURN)
    board.endTurn(thread)
    if (changer?.advance() === false) {
      changer = undefined
      board.endChanges()
    }
    if (board.areChangesOver(index, changers)) last++
  }
  decider.end()
  return { counts: decider.counts, admissions: decider.admissions, changes }
}
