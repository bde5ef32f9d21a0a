// Runs both sides of a litmus test, each in its own thread.
import { once } from 'node:events'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { type LitmusMemory, makeMemory, type Observed, play } from './rounds.js'

/** The end of a litmus test: the first bound that is reached. */
export interface Budget {
  /** Rounds that both sides started together. */
  readonly rounds?: number
  readonly seconds?: number
  /** Clearings of the words, one per 1,024 rounds. */
  readonly clearings?: number
}

interface Part {
  readonly memory: LitmusMemory
  readonly shape: number
  readonly side: number
  readonly budget: Budget
}

/** Runs the shape at an index of `SHAPES`. */
export async function watch(shape: number, budget: Budget): Promise<Observed> {
  const memory = makeMemory()
  const sides = [0, 1].map(async (side) => {
    const part: Part = { memory, shape, side, budget }
    const [seen] = await once(new Worker(new URL(import.meta.url), { workerData: part }), 'message')
    return seen as Observed
  })
  return (await Promise.all(sides))[0]!
}

function take({ memory, shape, side, budget }: Part): Observed {
  const { rounds = Number.POSITIVE_INFINITY, seconds = Number.POSITIVE_INFINITY } = budget
  let { clearings = Number.POSITIVE_INFINITY } = budget
  let endMs: number | undefined
  return play(memory, shape, side, (done) => {
    endMs ??= performance.now() + seconds * 1_000 // both threads have started by now
    return done >= rounds || --clearings <= 0 || performance.now() >= endMs
  })
}

if (!isMainThread && (workerData as Part | undefined)?.memory) {
  parentPort!.postMessage(take(workerData as Part))
}
