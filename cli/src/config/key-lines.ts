import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Two places of one key. */
export interface Duplicate {
  readonly key: string
  readonly line: number
  readonly firstLine: number
  /** The number of the second place among all places. */
  readonly place: number
}

const PARTS = 128
/** The most characters of a part in memory: 16 MB in all. */
const MOST_IN_MEMORY = 1 << 16

/**
 * Finds keys that are there twice, among more than fit in memory: a hash join. Keys are spread over parts by a hash.
 * A part that is full goes to a temporary file; in the end one part after the other is read.
 * @see Kitsuregawa, Tanaka and Moto-oka, "Application of Hash to Data Base Machine and Its Architecture" (1983)
 */
export class KeyLines {
  readonly #parts = Array.from({ length: PARTS }, () => ({ text: '', file: -1 }))
  #folder: string | undefined

  /** Notes a key at its place: the number of the entry. */
  add(key: string, line: number, place: number): void {
    const i = hashOf(key) % PARTS
    const part = this.#parts[i]!
    part.text += `${place} ${line} ${JSON.stringify(key)}\n`
    if (part.text.length < MOST_IN_MEMORY) return
    if (part.file < 0) {
      this.#folder ??= mkdtempSync(join(tmpdir(), 'millrace-keys-'))
      part.file = openSync(this.#pathOf(i), 'wx', 0o600)
    }
    writeSync(part.file, part.text)
    part.text = ''
  }

  /** The keys that are there more than once, part by part. */
  *duplicates(): Generator<Duplicate> {
    for (const [i, { text, file }] of this.#parts.entries()) {
      const first = new Map<string, number>()
      const all = file < 0 ? text : readFileSync(this.#pathOf(i), 'utf8') + text
      for (let from = 0; from < all.length; ) {
        const end = all.indexOf('\n', from)
        const [, place, line, json] = /^(\d+) (\d+) (.*)$/s.exec(all.slice(from, end))!
        const key = JSON.parse(json!)
        const firstLine = first.get(key)
        if (firstLine === undefined) first.set(key, Number(line))
        else yield { key, line: Number(line), firstLine, place: Number(place) }
        from = end + 1
      }
    }
  }

  /** Removes the temporary files. */
  close(): void {
    for (const { file } of this.#parts) if (file >= 0) closeSync(file)
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true })
  }

  #pathOf(part: number): string {
    return join(this.#folder!, String(part))
  }
}

/** FNV-1a over UTF-16 units. */
function hashOf(key: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  return (hash ^ (hash >>> 15)) >>> 0
}
