/** Where a long run is: one line that is written over on a terminal, a line every half minute anywhere else. */
export interface Progress {
  at: Tell
  /** A line that stays. */
  note: Tell
  /** Before something is written to the same terminal by another way. */
  clear(): void
}

export type Tell = (line: string) => void

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

/** For tests, whose output is kept only where they fail. */
export const silence: Progress = { at() {}, note() {}, clear() {} }

/** With commas, as the summaries have them. */
export const inCommas = (count: number): string => count.toLocaleString('en-US')
