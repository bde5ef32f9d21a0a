import type { LimiterOptions } from 'millrace'
import { MOST_RECORDS } from '#millrace/memory/layout.js'

/** A limiter, its keys, the operations of the threads, and the changes of its rules. */
export interface Shape {
  readonly name: string
  readonly options: Pick<LimiterOptions, 'edge' | 'maxKeys' | 'onFull' | 'rangeSum'>
  /** The granules of the first window: what the cells have room for. */
  readonly buckets: number
  /** How many windows each rule has: the first one and the changes. */
  readonly windows: number
  /** The granules of later windows are one of these. */
  readonly laterBuckets: readonly number[]
  /** The basis of the windows, in milliseconds. They are from 0.2 to 3 times as long, some 100 times. */
  readonly baseMs: number
  readonly rules: 1 | 2
  readonly keys: number
  /** `unevenly`: some keys are always at their limit. `in turn`: all threads use the same few keys at a time. */
  readonly picks: 'unevenly' | 'in turn'
  /** Whether decisions are refunded, and keys are penalized and blocked. */
  readonly adjusts: boolean
  /** The number of threads that change the rules. They also decide. */
  readonly changers: 1 | 2
}

/** Some records are lost if two threads change a rule at the same moment. */
const SPARE_RECORDS = 8

const PLAIN = {
  options: { maxKeys: 500 },
  buckets: 20,
  windows: MOST_RECORDS,
  laterBuckets: [20],
  baseMs: 20,
  rules: 1,
  keys: 16,
  picks: 'unevenly',
  adjusts: false,
  changers: 1,
} as const satisfies Omit<Shape, 'name'>

export const SHAPES: readonly Shape[] = [
  { ...PLAIN, name: 'one thread changes the window' },
  { ...PLAIN, name: 'refunds, penalties and blocks', adjusts: true, keys: 64, laterBuckets: [20, 10, 3, 1] },
  { ...PLAIN, name: 'two threads change the window', changers: 2, windows: MOST_RECORDS - SPARE_RECORDS },
  { ...PLAIN, name: 'smooth edge', options: { ...PLAIN.options, edge: 'smooth' }, adjusts: true, keys: 64 },
  { ...PLAIN, name: 'two rules', rules: 2 },
  {
    ...PLAIN,
    name: 'block sums of 300 buckets',
    options: { ...PLAIN.options, rangeSum: 'blocks' },
    buckets: 300,
    laterBuckets: [300, 257],
    adjusts: true,
    keys: 64,
  },
  {
    ...PLAIN,
    name: 'a Fenwick tree of 300 buckets',
    options: { ...PLAIN.options, rangeSum: 'fenwick' },
    buckets: 300,
    laterBuckets: [300, 257],
  },
  {
    ...PLAIN,
    name: 'more keys than ways',
    options: { maxKeys: 20, onFull: 'deny' },
    laterBuckets: [20, 4],
    baseMs: 5,
    keys: 300,
    picks: 'in turn',
  },
]
