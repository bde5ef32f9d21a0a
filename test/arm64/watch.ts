// Both sides of a litmus test, each in a thread of its own.
import { once } from 'node:events'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { type Ground, makeGround, play, type Seen } from './rounds.js'

/** What ends a litmus test, whichever comes first. */
export interface Budget {
  /** Rounds on which both sides set out together. */
  readonly rounds?: number
  readonly seconds?: number
  /** Clearings of the words, with 1,024 rounds between two. */
  readonly clearings?: number
}

interface Part {
  readonly ground: Ground
  readonly shape: number
  readonly side: number
  readonly budget: Budget
}

/** Plays the shape of this index in `SHAPES`. */
export async function watch(shape: number, budget: Budget): Promise<Seen> {
  const ground = makeGround()
  const sides = [0, 1].map(async (side) => {
    const part: Part = { ground, shape, side, budget }
    const [seen] = await once(new Worker(new URL(import.meta.url), { workerData: part }), 'message')
    return seen as Seen
  })
  return (await Promise.all(sides))[0]!
}

function take({ ground, shape, side, budget }: Part): Seen {
  const { rounds = Number.POSITIVE_INFINITY, seconds = Number.POSITIVE_INFINITY } = budget
  let { clearings = Number.POSITIVE_INFINITY } = budget
  let endMs: number | undefined
  return play(ground, shape, side, (done) => {
    endMs ??= performance.now() + seconds * 1_000 // both threads have started by now
    return done >= rounds || --clearings <= 0 || performance.now() >= endMs
  })
}

if (!isMainThread && (workerData as Part | undefined)?.ground) {
  parentPort!.postMessage(take(workerData as Part))
}
