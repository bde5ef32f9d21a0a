import { MillraceError } from '../core/errors.js'
import { again } from '../core/tries.js'
import { compareExchange, load, read, type Words, write } from './words.js'

const MAGIC_AT = 0
const MAGIC = 0x6d737063 // 'mspc'
const VERSION_AT = 1
const VERSION = 1
/** The number of pages that have been given out, with those of the head. */
const USED = 2
/** Entries of two words, up to the first without a tag. */
const ENTRIES = 16
const ENTRY_WORDS = 2
const TAG = 0
const START = 1
/** The most areas of one space. */
export const MOST_AREAS = 256

const PAGE_WORDS = 1_024
const PAGE_BYTES = 4 * PAGE_WORDS
const HEAD_WORDS = ENTRIES + MOST_AREAS * ENTRY_WORDS

/**
 * Shared memory that all threads of a limiter take areas from while they run: the arenas of policies with windows that
 * no policy had before. Its address space is reserved at creation, and its memory is taken when it is used.
 *
 * An area belongs to a tag. Threads that ask for the same tag at the same moment get the same area:
 *
 *  1. Entries are read in order, up to one with the tag, or one without any, which is claimed by CAS(TAG: 0 -> tag).
 *     If that fails, another thread has claimed the entry, and it is read again. Entries are never freed. So the entry
 *     of a tag is the first one that has it, for all threads and for ever: the first thread that looked past all
 *     entries before it claimed it, and they have had other tags since.
 *  2. If START is 0, pages are taken by CAS(USED: n -> n + pages), and handed over by CAS(START: 0 -> n). If that
 *     fails, another thread has handed over other pages: these are used, and those of this thread are lost. That takes
 *     two threads in the same few instructions, and a thread that dies in between loses as much; the next one that
 *     asks for the tag takes pages again.
 *
 * What is written into an area at first depends on the tag alone. So each thread writes it before it uses the area,
 * and one that writes it again, later than others count there, changes nothing.
 */
export class ArenaSpace {
  readonly buffer: SharedArrayBuffer
  readonly #words: Words

  /** @throws MillraceError `ERR_MILLRACE_ARENA_TOO_LARGE` */
  static create(words: number, option: string, value: unknown): ArenaSpace {
    const bytes = HEAD_WORDS * 4 + Math.ceil(words / PAGE_WORDS) * PAGE_BYTES
    const whole = Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES
    try {
      const buffer = new SharedArrayBuffer(HEAD_WORDS * 4, { maxByteLength: whole })
      const head = new Int32Array(buffer, 0, HEAD_WORDS)
      write(head, MAGIC_AT, MAGIC)
      write(head, VERSION_AT, VERSION)
      write(head, USED, Math.ceil(HEAD_WORDS / PAGE_WORDS))
      return new ArenaSpace(buffer)
    } catch (cause) {
      const expected = `a smaller number: this needs ${whole} bytes of address space, more than can be reserved`
      throw new MillraceError('ERR_MILLRACE_ARENA_TOO_LARGE', option, value, expected, { cause })
    }
  }

  /** @throws MillraceError `ERR_MILLRACE_INVALID_SHARE` */
  constructor(buffer: SharedArrayBuffer) {
    if (!(buffer instanceof SharedArrayBuffer) || buffer.byteLength < 4 * HEAD_WORDS) throw shareError(buffer)
    this.buffer = buffer
    this.#words = new Int32Array(buffer, 0, HEAD_WORDS)
    if (read(this.#words, MAGIC_AT) !== MAGIC || read(this.#words, VERSION_AT) !== VERSION)
      throw shareError(buffer)
  }

  /** The words that are left for new areas. */
  get freeWords(): number {
    return Math.max(0, this.#pages - load(this.#words, USED)) * PAGE_WORDS
  }

  get #pages(): number {
    return Math.floor(this.buffer.maxByteLength / PAGE_BYTES)
  }

  /** Whether the tag has an area. */
  has(tag: number): boolean {
    for (let at = ENTRIES; at < HEAD_WORDS; at += ENTRY_WORDS) {
      const own = load(this.#words, at + TAG)
      if (own === tag) return load(this.#words, at + START) !== 0
      if (own === 0) return false
    }
    return false
  }

  /** The index of the first word of the area of `words` words for a tag above 0; undefined: there is no room. */
  area(tag: number, words: number): number | undefined {
    const pages = Math.ceil(words / PAGE_WORDS)
    for (let at = ENTRIES; at < HEAD_WORDS; at += ENTRY_WORDS) {
      let own = load(this.#words, at + TAG)
      if (own === 0) {
        if (load(this.#words, USED) + pages > this.#pages) return undefined // leaves the entry to another tag
        own = compareExchange(this.#words, at + TAG, 0, tag) || tag
      }
      if (own === tag) return this.#start(at + START, pages)
    }
    return undefined
  }

  #start(at: number, pages: number): number | undefined {
    const present = load(this.#words, at)
    const page = present === 0 ? this.#takePages(at, pages) : present
    if (page === undefined) return undefined
    this.#grow((page + pages) * PAGE_BYTES)
    return page * PAGE_WORDS
  }

  #takePages(at: number, pages: number): number | undefined {
    for (let tries = 0; ; tries = again(tries)) {
      const used = load(this.#words, USED)
      if (used + pages > this.#pages) return load(this.#words, at) || undefined
      if (compareExchange(this.#words, USED, used, used + pages) !== used) continue
      return compareExchange(this.#words, at, 0, used) || used
    }
  }

  /** Another thread may grow it meanwhile: a growable buffer never shrinks. */
  #grow(bytes: number): void {
    while (this.buffer.byteLength < bytes) {
      try {
        this.buffer.grow(bytes)
      } catch (error) {
        if (this.buffer.byteLength < bytes) throw error
      }
    }
  }
}

function shareError(value: unknown): MillraceError {
  return new MillraceError(
    'ERR_MILLRACE_INVALID_SHARE',
    'shared.policies',
    value,
    'the memory of limiter.share()',
  )
}
