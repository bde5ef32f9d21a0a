import { readFileSync, writeSync } from 'node:fs'

export interface Admission {
  /** The index of the rule. */
  readonly rule: number
  readonly key: number
  readonly cost: number
  /** The granule that Redis has charged. */
  readonly granule: number
  /** When the process sent the request and had the reply, by the machine's clock. */
  readonly sentMs: number
  readonly receivedMs: number
}

const FIELDS = 6
const ENTRIES = 1_000

/** Writes the admissions of a process into its file. */
export class LogWriter {
  readonly #fd: number
  readonly #buffer = new Float64Array(FIELDS * ENTRIES)
  #length = 0

  constructor(fd: number) {
    this.#fd = fd
  }

  add({ rule, key, cost, granule, sentMs, receivedMs }: Admission): void {
    this.#buffer.set([rule, key, cost, granule, sentMs, receivedMs], this.#length)
    this.#length += FIELDS
    if (this.#length === this.#buffer.length) this.flush()
  }

  flush(): void {
    const bytes = new Uint8Array(this.#buffer.buffer, 0, 8 * this.#length)
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#fd, bytes, at)
    this.#length = 0
  }
}

export function readLog(file: string): Admission[] {
  const bytes = readFileSync(file)
  const values = new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))
  return Array.from({ length: values.length / FIELDS }, (_, i) => {
    const [rule, key, cost, granule, sentMs, receivedMs] = values.subarray(FIELDS * i) as unknown as number[]
    return {
      ...{ rule: rule!, key: key!, cost: cost!, granule: granule! },
      ...{ sentMs: sentMs!, receivedMs: receivedMs! },
    }
  })
}
