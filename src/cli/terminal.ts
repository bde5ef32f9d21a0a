import { clearLine, cursorTo } from 'node:readline'

/** What a command needs of the process it runs in; a test hands in its own. */
export interface Surroundings {
  readonly stdin: NodeJS.ReadableStream
  readonly stdout: Output
  readonly stderr: Output
}
export type Output = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number }

/** A mistake of whoever typed the command: shown as one line, without a stack. */
export class UsageError extends Error {}

const MS_BETWEEN_UPDATES = 100

/** One line on a terminal that says how far it has come; nothing where the output is no terminal. */
export class Progress {
  readonly #output: Output
  #shownAt = 0

  constructor(output: Output) {
    this.#output = output
  }

  show(text: () => string): void {
    const now = performance.now()
    if (!this.#output.isTTY || now - this.#shownAt < MS_BETWEEN_UPDATES) return
    this.#shownAt = now
    this.#clear()
    this.#output.write(shortened(text(), (this.#output.columns ?? 80) - 1))
  }

  done(): void {
    if (this.#shownAt > 0) this.#clear()
  }

  #clear(): void {
    cursorTo(this.#output, 0)
    clearLine(this.#output, 0)
  }
}

/** At most `width` characters, the last an ellipsis where some were cut. */
export function shortened(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`
}

/** Numbers as people read them: 1,729. */
export function grouped(number: number): string {
  return number.toLocaleString('en-US')
}
