import { CommanderError } from 'commander'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { parseArguments } from '../../bench/arguments.js'
import { CASES } from '../../bench/cases/index.js'

/** What is written to stderr for arguments that are not understood. */
function refusalOf(...argv: string[]): string {
  let written = ''
  assert.throws(
    () =>
      parseArguments(argv, (text) => {
        written += text
      }),
    (error: unknown) => error instanceof CommanderError && error.exitCode !== 0,
  )
  return written
}

test('without arguments every case runs in full', () => {
  assert.equal(parseArguments([]), { cases: Object.keys(CASES), quick: false, json: false })
})

test('--case may be given more than once, and each case runs once', () => {
  const { cases } = parseArguments(['--case', 'hash', '--case', 'clock', '--case', 'hash'])
  assert.equal(cases, ['hash', 'clock'])
})

test('--quick and --json are understood', () => {
  const { quick, json } = parseArguments(['--quick', '--json'])
  assert.ok(quick && json)
})

test('an unknown case is refused with the names of all', () => {
  const said = refusalOf('--case', 'clok')
  assert.match(said, 'clok')
  for (const name of Object.keys(CASES)) assert.match(said, name)
})

test('a name that every object has is no case', () => {
  assert.match(refusalOf('--case', 'toString'), 'no such case')
})

test('unknown options, values left over and missing names are refused', () => {
  assert.match(refusalOf('--fast'), '--fast')
  assert.match(refusalOf('check'), 'too many arguments')
  assert.match(refusalOf('--case'), 'argument missing')
})

test.run()
