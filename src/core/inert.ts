/** Characters of a text of others that are shown, at most. */
const MOST_SHOWN = 256

/** Control and format characters, separators of lines, and halves of a pair. */
const ACTIVE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\\]/gu

/**
 * A text of others, such as a key, for one line of a log or a terminal: what would move the cursor, turn the direction of
 * writing or begin a line is escaped, as `\u{1b}`, and so is the backslash. A text of more than 256 characters ends in
 * its length, as `…(65536)`.
 */
export function inert(text: string): string {
  const shown = text.length > MOST_SHOWN ? text.slice(0, MOST_SHOWN) : text
  const escaped = shown.replace(ACTIVE, (found) => (found === '\\' ? '\\\\' : escapeOf(found)))
  return shown === text ? escaped : `${escaped}…(${text.length})`
}

const escapeOf = (found: string): string => `\\u{${found.codePointAt(0)!.toString(16)}}`

/** A message that quotes texts of others, for one line: the same characters are escaped, but for the backslash. */
export const onOneLine = (message: string): string =>
  message.replace(ACTIVE, (found) => (found === '\\' ? found : escapeOf(found)))

/** The stack of an error, whose message is on one line. */
export const inertStack = (stack: string): string =>
  stack
    .split(/\n(?= +at )/)
    .map(onOneLine)
    .join('\n')
