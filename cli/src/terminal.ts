import { clearLine, cursorTo } from 'node:readline'
import { styleText } from 'node:util'

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
    this.#output.write(shortened(text(), widthOf(this.#output) - 1))
  }

  done(): void {
    if (this.#shownAt > 0) this.#clear()
  }

  #clear(): void {
    cursorTo(this.#output, 0)
    clearLine(this.#output, 0)
  }
}

/** How many characters fit on a line: 80 where nobody knows (no terminal, or one that says 0). */
export function widthOf({ columns = 0 }: Output): number {
  return columns > 0 ? columns : 80
}

/** Whether an output shows colour: as Node.js decides it, by NO_COLOR, FORCE_COLOR and what the terminal can do. */
export function hasColour(output: Output): boolean {
  return styleText('red', '.', { stream: output }) !== '.'
}

/**
 * Text of others, such as a line of a log, safe to show: what is not printable ASCII becomes an escape as in JSON, so
 * that it can't steer a terminal and each character is one column wide.
 */
export function printable(text: string): string {
  return text.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** At most `width` characters, the last an ellipsis where some were cut. */
export function shortened(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`
}

/** Lines of at most `width` characters, broken between words; those after the first are set in by two more. */
export function wrapped(text: string, width: number): string[] {
  const indent = /^ */.exec(text)![0]
  const lines: string[] = []
  let rest = text
  while (rest.length > width) {
    const space = rest.lastIndexOf(' ', width)
    const cut = rest.slice(0, Math.max(0, space)).trim() === '' ? width : space
    lines.push(rest.slice(0, cut))
    rest = `${indent}  ${rest.slice(cut).trimStart()}`
  }
  return [...lines, rest]
}

/** Numbers as people read them: 1,729. */
export function grouped(number: number): string {
  return number.toLocaleString('en-US')
}
