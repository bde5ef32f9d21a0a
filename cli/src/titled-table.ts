import Table from 'cli-table3'
import { wrapped } from './terminal.js'

/** Parts of a frame that a borderless table leaves out. */
const FRAME = [
  ...['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right'],
  ...['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid'],
]
const BORDERLESS = { ...Object.fromEntries(FRAME.map((part) => [part, ''])), middle: ' ' }

/** A table with a title. The first column is text, the others are figures. It has no frame if that would not fit. */
export function titledTable(width: number, title: string, rows: readonly (readonly string[])[]): string {
  const framed = table(rows, {})
  const fits = framed.split('\n').every((line) => line.length <= width)
  const text = fits ? framed : table(rows, { chars: BORDERLESS, padding: 0 })
  return [...wrapped(title, width), text].join('\n')
}

function table(
  [head, ...rows]: readonly (readonly string[])[],
  { chars, padding = 1 }: { chars?: typeof BORDERLESS; padding?: number },
): string {
  const made = new Table({
    head: [...head!],
    colAligns: head!.map((_, i) => (i === 0 ? 'left' : 'right')),
    style: { head: [], border: [], compact: true, 'padding-left': padding, 'padding-right': padding },
    ...(chars && { chars }),
  })
  made.push(...rows.map((row) => [...row]))
  return made.toString()
}
