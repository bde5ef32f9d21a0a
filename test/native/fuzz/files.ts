// Random calls of the addon's functions for files, with open, closed and invalid descriptors.
import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import type { Mapping, NativeFiles } from '#millrace/native/files.js'
import type { Values } from './values.js'

const CALLS = ['allocate', 'lock', 'shareLock', 'map', 'wallErrorMs'] as const
type Loose = Record<(typeof CALLS)[number], (...args: unknown[]) => unknown>
const MOST_OPEN = 8
const MOST_MAPPED = 6
const MOST_BYTES = 2 ** 20
/** No process has a descriptor this large. A random descriptor must not be one of Node's. */
const UNUSED_DESCRIPTOR = 2 ** 24

export class FileCalls {
  readonly #files: Loose
  readonly #values: Values
  readonly #folder = mkdtempSync(join(tmpdir(), 'millrace-fuzz-'))
  readonly #open: number[] = []
  readonly #mapped: Mapping[] = []

  constructor(files: NativeFiles, values: Values) {
    this.#files = files as unknown as Loose
    this.#values = values
  }

  /** Makes a call. Returns a complaint, or undefined if the result was right. */
  call(): string | undefined {
    const values = this.#values
    this.#openAndClose()
    if (values.chance(0.1)) return this.#unmap()
    const name = values.of(CALLS)
    const args = this.#argumentsOf(name)
    try {
      const result = this.#files[name](...args)
      if (name === 'map') this.#keep(result as Mapping)
      return undefined
    } catch (error) {
      const { code, syscall } = error as NodeJS.ErrnoException
      const isOfSystem = typeof code === 'string' && typeof syscall === 'string'
      if (error instanceof TypeError || isOfSystem) return undefined
      return `${name}(${args.map((each) => inspect(each)).join()}) threw ${inspect(error)}`
    }
  }

  /** The memory of a mapped file that is large enough for an arena, or undefined. */
  mapped(): ArrayBuffer | undefined {
    const large = this.#mapped
      .map(({ buffer }) => buffer)
      .filter(({ byteLength }) => byteLength >= MOST_BYTES)
    return large.length === 0 ? undefined : this.#values.of(large)
  }

  end(): void {
    for (const fd of this.#open) closeSync(fd)
    rmSync(this.#folder, { recursive: true })
  }

  #openAndClose(): void {
    const values = this.#values
    if (this.#open.length === 0 || (this.#open.length < MOST_OPEN && values.chance(0.2))) {
      const fd = openSync(join(this.#folder, String(values.below(3))), 'a+', 0o600)
      if (values.chance(0.5)) ftruncateSync(fd, MOST_BYTES) // never shorter, because it may be mapped
      this.#open.push(fd)
    } else if (values.chance(0.1)) {
      closeSync(this.#open.splice(values.below(this.#open.length), 1)[0]!)
    }
  }

  #argumentsOf(name: (typeof CALLS)[number]): unknown[] {
    const values = this.#values
    const fd = values.chance(0.8) ? values.of(this.#open) : unusedDescriptor(values.any())
    const bytes = values.chance(0.6) ? 1 + values.below(MOST_BYTES) : MOST_BYTES
    const right = {
      allocate: [fd, bytes],
      lock: [fd, values.chance(0.5)],
      shareLock: [fd],
      wallErrorMs: [fd],
      map: [fd, bytes],
    }[name]
    const args: unknown[] = [...right]
    if (values.chance(0.3)) args[values.below(args.length)] = values.any()
    args[0] = this.#open.includes(args[0] as number) ? args[0] : unusedDescriptor(args[0])
    // Limits valid arguments that would fill the disk or take a day.
    for (let i = 1; i < args.length && name !== 'map'; i++) {
      const number = args[i]
      if (Number.isInteger(number) && (number as number) > 0) {
        args[i] = name === 'allocate' ? Math.min(number as number, MOST_BYTES) : (number as number) % 2
      }
    }
    if (values.chance(0.05)) args.length = values.below(args.length)
    return args
  }

  /** Unmaps with the mapping's own buffer (perhaps again), or with another value. */
  #unmap(): string | undefined {
    const values = this.#values
    if (this.#mapped.length === 0) return undefined
    const mapping = values.of(this.#mapped)
    const others = this.#mapped.map(({ buffer }) => buffer)
    const given = values.chance(0.5) ? mapping.buffer : values.chance(0.5) ? values.of(others) : values.any()
    try {
      mapping.unmap(given as ArrayBuffer)
      return undefined
    } catch (error) {
      return error instanceof TypeError ? undefined : `unmap(${inspect(given)}) threw ${inspect(error)}`
    }
  }

  #keep(mapping: Mapping): void {
    this.#mapped.push(mapping)
    if (this.#mapped.length > MOST_MAPPED) this.#mapped.splice(this.#values.below(MOST_MAPPED), 1)
  }
}

function unusedDescriptor(value: unknown): unknown {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < UNUSED_DESCRIPTOR
    ? UNUSED_DESCRIPTOR + (value as number)
    : value
}
