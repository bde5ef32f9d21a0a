// Keys and lines of logs are text that attackers write: what the command prints of them is inert on a terminal.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fileOf, linesOf, onStores } from './config/stores.js'
import { type Ran, ran } from './streams.js'

const HOSTILE = {
  'a script': '<script>alert(1)</script>',
  'ANSI escapes': '\u001b[31mred\u009b0m\u001b]0;title\u0007',
  'bidirectional marks': '\u202eevil\u2066\u200f\u061c',
  'line ends': 'a\r\nERROR forged\u2028b\u2029c\u0085d',
  'invisible characters': 'a\u200bb\u2060c\ufeff\u{e0041}',
  'a long key': 'x'.repeat(512),
}

/** What could act on a terminal, but for the ends of the command's own lines. */
const ACTIVE = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u

function assertInert({ out, err }: Ran): void {
  assert.not.match(`${out}${err}`, ACTIVE)
  assert.not.match(`${out}${err}`, /^ERROR forged/m)
}

const POLICY = { limit: 5, window: '1m', name: 'a rule' }

for (const [what, text] of Object.entries(HOSTILE)) {
  onStores(`${what} in a key is inert in what config prints, and JSON has it in whole`, async (on) => {
    await on('import', fileOf(linesOf({ [text]: { ...POLICY, name: text } })))
    const listed = await on('list', '--json')
    for (const shown of [
      listed,
      await on('list'),
      await on('list', '--prefix', text),
      await on('get', text),
      await on('get', text, '--json'),
      await on('get', `${text.slice(0, 500)} none`),
      await on('set', text, '--limit', '7', '--window', '1m'),
      await on('delete', `${text.slice(0, 500)} none`),
      await on('validate'),
      await on('delete', text),
    ])
      assertInert(shown)
    assert.is(JSON.parse(listed.out).key, text)
  })

  test(`${what} in a file of policies is inert in its faults`, async () => {
    const file = fileOf(linesOf({ [text]: { limit: text, window: '1m', [text]: 1 }, [`${text}.`]: [] }))
    for (const args of [['validate'], ['validate', '--json'], ['import', '--store', `file:${file}.store`]])
      assertInert(await ran(['config', ...args, file]))
    assertInert(await ran(['config', 'validate', fileOf(`${text}\n`)]))
  })

  test(`${what} in a log is inert in the reports of a replay`, async () => {
    const path = text.replace(/[\r\n ]/g, '') // the format of a log ends a path there
    const line = (second: number) =>
      `192.0.2.7 - - [09/Mar/2026:10:00:0${second} +0000] "GET /${path} HTTP/1.1" 200 1 "-" "${text}"\n`
    const log = fileOf([...Array(9).keys()].map(line).join(''), 'access.log')
    for (const more of [[], ['--json'], ['--compare', 'token-bucket']]) {
      const shown = await ran(['replay', '--key', 'path', '--limit', '2', '--window', '1m', ...more, log])
      assert.is(shown.code, 0)
      assertInert(shown)
    }
    assertInert(
      await ran(['replay', '--limit', '2', '--window', '1m', fileOf(`${text}\n${line(1)}`, 'app.log')]),
    )
  })

  test(`${what} in an argument is inert in the message about it`, async () => {
    assertInert(await ran([text]))
    assertInert(await ran(['config', 'list', '--store', text]))
    assertInert(await ran(['replay', '--limit', text, '--window', '1m', 'app.log']))
  })
}

test.run()
