import type { Policy } from 'millrace/config/memory'
import { printable } from '../terminal.js'
import { KeyLines } from './key-lines.js'
import type { PolicyFile } from './policy-file.js'

/** Something wrong in a file. */
export interface Fault {
  readonly line: number
  readonly message: string
}

/** More keys that are there twice are told in no order. */
const MOST_SORTED = 10_000

/** Numbers of entries. A bit for each keeps ten million in a megabyte. */
class Places {
  #bits = new Uint8Array(1 << 10)

  add(place: number): void {
    const at = place >>> 3
    if (at >= this.#bits.length) {
      const more = new Uint8Array(2 * Math.max(at, this.#bits.length))
      more.set(this.#bits)
      this.#bits = more
    }
    this.#bits[at]! |= 1 << (place & 7)
  }

  has(place: number): boolean {
    return ((this.#bits[place >>> 3] ?? 0) & (1 << (place & 7))) !== 0
  }
}

/** A file of policies of which every entry has been checked. */
export class CheckedFile {
  readonly #file: PolicyFile
  readonly #duplicates: Places
  /** The number of policies. Of those with the same key it counts the first. */
  readonly policies: number
  readonly faults: number

  constructor(file: PolicyFile, duplicates: Places, counts: { policies: number; faults: number }) {
    this.#file = file
    this.#duplicates = duplicates
    this.policies = counts.policies
    this.faults = counts.faults
  }

  /** The policies, in the order of the file. */
  async *all(): AsyncGenerator<{ key: string; policy: Policy }> {
    let place = -1
    for await (const entry of this.#file.entries(() => {})) {
      place++
      if (entry.error === undefined && !this.#duplicates.has(place)) yield entry
    }
  }
}

/**
 * Checks every entry of a file, in memory that does not grow with it. Tells each fault: those of lines in their
 * order, then keys that are there twice, in the order of their lines.
 */
export async function checkFile(
  file: PolicyFile,
  {
    signal,
    onFault,
    onProgress,
  }: {
    readonly signal: AbortSignal
    readonly onFault: (fault: Fault) => Promise<void>
    /** Gets the part of the file that has been read, 0 to 1, and the number of entries. */
    readonly onProgress: (part: number, entries: number) => void
  },
): Promise<CheckedFile> {
  const duplicates = new Places()
  const keys = new KeyLines()
  let [place, faults] = [-1, 0]
  const tell = async (fault: Fault) => {
    faults++
    await onFault(fault)
  }
  try {
    for await (const entry of file.entries((part) => onProgress(part, place + 1))) {
      signal.throwIfAborted()
      place++
      if (entry.error === undefined) keys.add(entry.key, entry.line, place)
      else await tell({ line: entry.line, message: entry.error })
    }
    const inOrder: Fault[] = []
    for (const { key, line, firstLine, place } of keys.duplicates()) {
      signal.throwIfAborted()
      duplicates.add(place)
      const message = `expected each key once, got "${printable(key)}", which is in line ${firstLine} already`
      if (inOrder.length < MOST_SORTED) inOrder.push({ line, message })
      else await tell({ line, message })
    }
    for (const fault of inOrder.sort((a, b) => a.line - b.line)) await tell(fault)
  } finally {
    keys.close()
  }
  return new CheckedFile(file, duplicates, { policies: place + 1 - faults, faults })
}
