/** Says where a long run is: one line written over on a terminal, else a line every few seconds. */
export type Tell = (text: string) => void

const ERASE_LINE = '\r\x1b[2K'
const EVERY_MS = { terminal: 200, plain: 5_000 }

export function progressOn(stream: NodeJS.WriteStream): { tell: Tell; line: Tell } {
  const everyMs = stream.isTTY ? EVERY_MS.terminal : EVERY_MS.plain
  let last = Number.NEGATIVE_INFINITY
  return {
    tell(text) {
      const now = performance.now()
      if (now - last < everyMs) return
      last = now
      stream.write(stream.isTTY ? ERASE_LINE + text.slice(0, stream.columns - 1) : `${text}\n`)
    },
    /** A line that stays. */
    line: (text) => stream.write(`${stream.isTTY ? ERASE_LINE : ''}${text}\n`),
  }
}
