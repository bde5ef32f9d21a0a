/** The server thread of the case `cache-line`. */
import { parentPort, workerData } from 'node:worker_threads'
import { readRequests, reply } from './cache-lines.js'

export interface ServerData {
  readonly words: Int32Array
  readonly count: number
  /** Words from one request to the next; 0 selects the ping-pong of single numbers. */
  readonly stride: number
}

const { words, count, stride } = workerData as ServerData
parentPort!.postMessage('ready')
if (stride === 0) reply(words, count)
else readRequests(words, count, stride)
