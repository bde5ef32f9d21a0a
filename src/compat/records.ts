import type { Limiter } from '../api/limiter.js'
import type { Clock } from '../core/clock.js'
import { millisecondsAs } from '../core/duration.js'
import { MillraceError } from '../core/errors.js'
import { createLimiter } from '../create/create.js'
import { MOST_HITS } from './counts.js'
import { Mark } from './mark.js'
import type { CheckedOptions } from './options.js'
import type { Windows } from './windows.js'

/** A record that counts. */
export interface Found {
  readonly records: Records
  /** Whole milliseconds until it ends; `Infinity`: never. */
  readonly leftMs: number
}

/** Milliseconds from which on a record never ends. */
const FOR_EVER_MS = 5_000 * 365 * 86_400_000

/**
 * Records of one length in milliseconds, in which a key counts points from the moment when its record is opened.
 * A key may have below 0 points: what is taken out beyond 0 is counted apart.
 */
export class Records {
  readonly #ms: number
  readonly #openings: Mark
  readonly #points: Limiter
  /** The points below 0. Few keys have any. */
  #below: Limiter | undefined
  readonly #newLimiter: () => Limiter

  constructor(ms: number, { maxKeys }: CheckedOptions, clock: Clock) {
    const rule = { limit: MOST_HITS, window: millisecondsAs(2 * ms), granularity: ms, maxKeys, clock }
    this.#ms = ms
    this.#openings = new Mark(ms, maxKeys, clock)
    this.#newLimiter = () => createLimiter(rule)
    this.#points = this.#newLimiter()
  }

  /** How long the record of a key still counts; 0: it has none. */
  leftMs(key: string): number {
    const leftMs = this.#openings.leftMs(key)
    return leftMs > 0 && this.#ms >= FOR_EVER_MS ? Number.POSITIVE_INFINITY : leftMs
  }

  /** Opens a record with so many points, in place of an earlier one of this length. @param blocks whether it is a block */
  open(key: string, points: number, blocks: boolean): void {
    this.#points.clear(key)
    this.#below?.clear(key)
    this.#openings.set(key)
    this.add(key, points)
    if (blocks) this.#points.block(key, this.#ms)
  }

  /** Whether the record of a key, which counts, is a block. */
  isBlock(key: string): boolean {
    return !this.#points.peek(key, 0).allowed
  }

  /** Adds points, or takes them out. Returns the points of the key. */
  add(key: string, points: number): number {
    const most = MOST_HITS - (points > 0 ? this.#points.usage(key) : 0)
    if (points > most) throw tooMany(points)
    if (points > 0) this.#points.penalize(key, points)
    if (points < 0) {
      this.#below ??= this.#newLimiter()
      this.#below.penalize(key, -points)
    }
    return this.value(key)
  }

  /** The points of a key. */
  value(key: string): number {
    return this.#points.usage(key) - (this.#below?.usage(key) ?? 0)
  }

  clear(key: string): void {
    this.#openings.clear(key)
  }

  clearAll(): void {
    this.#openings.clearAll()
  }

  limiters(): readonly Limiter[] {
    return [...this.#openings.limiters(), this.#points, ...(this.#below === undefined ? [] : [this.#below])]
  }

  async close(): Promise<void> {
    await Promise.all([this.#openings.close(), this.#points.close(), this.#below?.close()])
  }
}

/** The record of a key, of whichever length. */
export function findRecord(lengths: Windows<Records>, key: string): Found | undefined {
  for (const records of lengths.all()) {
    const leftMs = records.leftMs(key)
    if (leftMs > 0) return { records, leftMs }
  }
  return undefined
}

/**
 * Opens a record in place of every other one of the key.
 * @param ms above 0, or it never ends
 * @param blocks whether it is a block
 */
export function openRecord(
  lengths: Windows<Records>,
  key: string,
  points: number,
  ms: number,
  blocks: boolean,
): void {
  const records = lengths.of(ms > 0 ? ms : FOR_EVER_MS)
  for (const other of lengths.all()) if (other !== records) other.clear(key)
  records.open(key, points, blocks)
}

/** @throws {MillraceError} `ERR_MILLRACE_INVALID_COST` unless the points are an integer that can be counted */
export function checkPoints(points: unknown): asserts points is number {
  if (Number.isInteger(points) && Math.abs(points as number) <= MOST_HITS) return
  throw tooMany(points)
}

const tooMany = (points: unknown): MillraceError =>
  new MillraceError(
    'ERR_MILLRACE_INVALID_COST',
    'points',
    points,
    `an integer; ${MOST_HITS} together at most`,
  )
