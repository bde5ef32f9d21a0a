import Table from 'cli-table3'
import type { InvalidPolicy, StoredPolicy } from 'millrace/config/memory'
import { printable, wrapped } from '../terminal.js'
import { ruleTexts } from './policy-text.js'

export type Listed = StoredPolicy | InvalidPolicy

/** What is wrong with a document, without the key in front of it. */
export function faultOf({ key, error }: InvalidPolicy): string {
  const { message } = error
  return message.startsWith(`${key}: `) ? message.slice(key.length + 2) : message
}

/**
 * A table of policies in at most `width` columns. If they do not fit, it leaves out the versions; if they do not fit
 * even then, each key has lines of its own. Nothing is cut off: keys are for use in other commands.
 */
export function policyTable(listed: readonly Listed[], width: number): string {
  const rows = listed.map((one) => ({
    key: printable(one.key),
    texts: one.policy === undefined ? [`no policy: ${printable(faultOf(one))}`] : ruleTexts(one.policy),
    version: one.version === undefined ? '' : String(one.version),
  }))
  const full = table(
    ['key', 'policy', 'version'],
    rows.map(({ key, texts, version }) => [key, texts.join('\n'), version]),
  )
  if (fits(full, width)) return full
  const narrow = table(
    ['key', 'policy'],
    rows.map(({ key, texts }) => [key, texts.join('\n')]),
  )
  if (fits(narrow, width)) return narrow
  return rows
    .flatMap(({ key, texts }) =>
      [key, ...texts.map((text) => `  ${text}`)].flatMap((line) => wrapped(line, width)),
    )
    .join('\n')
}

const fits = (text: string, width: number): boolean => text.split('\n').every((line) => line.length <= width)

function table(head: string[], rows: string[][]): string {
  const made = new Table({
    head,
    colAligns: head.map((title) => (title === 'version' ? 'right' : 'left')),
    style: { head: [], border: [], compact: true },
  })
  made.push(...rows)
  return made.toString()
}
