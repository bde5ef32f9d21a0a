/** The thread that answers in the case `line`. */
import { parentPort, workerData } from 'node:worker_threads'
import { answer, readRequests } from './line.js'

export interface Answers {
  readonly words: Int32Array
  readonly count: number
  /** Words from one request to the next; 0: what is asked is a number. */
  readonly apart: number
}

const { words, count, apart } = workerData as Answers
parentPort!.postMessage('ready')
if (apart === 0) answer(words, count)
else readRequests(words, count, apart)
