/**
 * Progress of a long run: a terminal gets one line that is overwritten, other streams a line every half
 * minute.
 */
export interface Progress {
  at: PrintLine
  /** Prints a line that stays. */
  note: PrintLine
  /** Erases the progress line, before other output to the same terminal. */
  clear(): void
}

export type PrintLine = (line: string) => void

const ERASE_LINE = '\r\x1b[2K'
const LIVE_MS = 200
const PLAIN_MS = 30_000

export function progressOn(stream: NodeJS.WriteStream): Progress {
  const everyMs = stream.isTTY ? LIVE_MS : PLAIN_MS
  let lastMs = performance.now()
  const clear = () => {
    if (stream.isTTY) stream.write(ERASE_LINE)
  }
  return {
    at(line) {
      const nowMs = performance.now()
      if (nowMs - lastMs < everyMs) return
      lastMs = nowMs
      clear()
      stream.write(stream.isTTY ? line.slice(0, (stream.columns ?? 80) - 1) : `${line}\n`)
    },
    note(line) {
      clear()
      stream.write(`${line}\n`)
    },
    clear,
  }
}

/** No progress: for tests, whose output only matters if they fail. */
export const silence: Progress = { at() {}, note() {}, clear() {} }

/** A number with thousands separators. */
export const inCommas = (count: number): string => count.toLocaleString('en-US')
