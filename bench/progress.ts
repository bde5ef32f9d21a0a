/** Progress of a run: a terminal gets one line that is overwritten, other streams get one line per round. */
export interface Progress {
  at(title: string, round: number, rounds: number, contender: string): void
  done(): void
}

export function reportProgress(stream: NodeJS.WriteStream): Progress {
  return stream.isTTY ? liveLine(stream) : plainLines(stream)
}

const ERASE_LINE = '\r\x1b[2K'

function liveLine(stream: NodeJS.WriteStream): Progress {
  return {
    at(title, round, rounds, contender) {
      const line = `${title}, round ${round} of ${rounds}: ${contender}`
      stream.write(ERASE_LINE + line.slice(0, Math.max(0, (stream.columns ?? 80) - 1)))
    },
    done: () => stream.write(ERASE_LINE),
  }
}

function plainLines(stream: NodeJS.WriteStream): Progress {
  let last = ''
  return {
    at(title, round, rounds) {
      const line = `${title}, round ${round} of ${rounds}\n`
      if (line !== last) stream.write(line)
      last = line
    },
    done() {},
  }
}
