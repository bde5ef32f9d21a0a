/** Where a run is: one line that is written over on a terminal, a line every ten seconds anywhere else. */
export interface Progress {
  at(line: string): void
  /** A line that stays. */
  note(line: string): void
}

const ERASE_LINE = '\r\x1b[2K'
const LIVE_MS = 200
const PLAIN_MS = 10_000

export function progressOn(stream: NodeJS.WriteStream): Progress {
  const everyMs = stream.isTTY ? LIVE_MS : PLAIN_MS
  let lastMs = performance.now()
  return {
    at(line) {
      const nowMs = performance.now()
      if (nowMs - lastMs < everyMs) return
      lastMs = nowMs
      stream.write(stream.isTTY ? ERASE_LINE + line.slice(0, (stream.columns ?? 80) - 1) : `${line}\n`)
    },
    note(line) {
      stream.write(`${stream.isTTY ? ERASE_LINE : ''}${line}\n`)
    },
  }
}

/** For tests, whose output is kept only where they fail. */
export const silence: Progress = { at() {}, note() {} }

/** With commas, as the summaries have them. */
export const inCommas = (count: number): string => count.toLocaleString('en-US')
