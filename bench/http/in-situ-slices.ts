/** What the server process of the case `in-situ` tells its parent. */

/** The length of a slice of time in which the server serves in one mode. */
export const SLICE_MS = 250

/** The first message: the server listens. */
export interface Listening {
  readonly port: number
}

/** What the requests of one slice took. The second message has all slices. */
export interface Slice {
  /** 0: the baseline, 1: the measured mode. */
  readonly mode: number
  readonly requests: number
  /** Processor time of all threads of the process, in microseconds. */
  readonly cpuUs: number
}
