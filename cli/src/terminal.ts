import { once } from 'node:events'
import { clearLine, cursorTo } from 'node:readline'
import { styleText } from 'node:util'

/** The streams of the process that a command uses; tests pass their own. */
export interface Environment {
  readonly stdin: NodeJS.ReadableStream
  readonly stdout: Output
  readonly stderr: Output
}
export type Output = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number }

/** An error in the user's input; it is printed as one line, without a stack. */
export class UsageError extends Error {}

/** An operation that failed, by no fault of the arguments; it is printed as one line, without a stack. */
export class FailedOperation extends Error {}

/** A package that a command needs is not installed; it is printed as one line, without a stack. */
export class MissingPackage extends Error {}

const MS_BETWEEN_UPDATES = 100

/** A progress line on a terminal; other outputs get nothing. */
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

/** The width of an output in columns: 80 without a terminal, or if the terminal reports 0. */
export function widthOf({ columns = 0 }: Output): number {
  return columns > 0 ? columns : 80
}

/** The width of lines for people or programs: those that read a pipe get lines that are not wrapped. */
export function lineWidthOf(output: Output): number {
  return output.isTTY ? widthOf(output) : Number.POSITIVE_INFINITY
}

/** Whether Node.js writes colour to an output: depends on NO_COLOR, FORCE_COLOR and the terminal. */
export function hasColour(output: Output): boolean {
  return styleText('red', '.', { stream: output }) !== '.'
}

/**
 * Makes foreign text, such as a line of a log, safe to print. Characters other than printable ASCII become
 * JSON escapes, so that they cannot control the terminal and every character is one column wide.
 */
export function printable(text: string): string {
  return text.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** JSON for an output that may be a terminal: what would control it, or turn the direction of writing, is escaped. */
export const inertJson = (value: unknown, indent?: number): string =>
  JSON.stringify(value, undefined, indent).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (found) =>
    found === '\n' ? found : printable(found),
  )

/** A message that may quote foreign text, on one line. */
export const inertMessage = (message: string): string =>
  message.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, printable)

/** Cuts text to `width` characters, with an ellipsis at the end if some were cut. */
export function shortened(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`
}

/**
 * Wraps text at words into lines of at most `width` characters; lines after the first get two more spaces of
 * indent.
 */
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

/** Writes text, and waits while the output is full. */
export async function print(output: Output, text: string): Promise<void> {
  if (!output.write(text)) await once(output, 'drain')
}

/** A paragraph for commander's `addHelpText`: an empty line, then the wrapped text. */
export function helpParagraph(text: string, output: Output): string {
  return ['', ...wrapped(text, widthOf(output))].join('\n')
}

/** A number with thousands separators: 1,729. */
export function grouped(number: number): string {
  return number.toLocaleString('en-US')
}
